create or replace function tidemark.closed_domains()
returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return array(select d.domain from tidemark.shut_domains() d);
end
$$;
comment on function tidemark.closed_domains() is
    'Domains whose gate, domain.<name>.enabled, is closed: workers deliver none of their events. A domain without '
    'such a setting has no gate of its own.';
grant execute on function tidemark.closed_domains() to tidemark_reader, tidemark_executor;
