create or replace function tidemark.closed_domains()
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce((
        select array_agg(substr(s.key, 8, length(s.key) - 15)) from tidemark.setting s
        where s.key like 'domain.%.enabled' and s.value <> 'true'), '{}');
end
$$;
comment on function tidemark.closed_domains() is
    'Domains whose gate, domain.<name>.enabled, is closed: workers deliver none of their events. A domain without '
    'such a setting has no gate of its own.';
grant execute on function tidemark.closed_domains() to tidemark_reader, tidemark_executor;
