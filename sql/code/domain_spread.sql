create or replace function tidemark.domain_spread()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_table_name = 'domain' then
        update tidemark.event_type t set metadata_only = new.metadata_only, restricted = new.restricted where t.domain = new.domain;
    else
        -- Whoever changes the domain at the same time waits for this row, and then finds it.
        select d.metadata_only, d.restricted into new.metadata_only, new.restricted
        from tidemark.domain d where d.domain = new.domain for share;
    end if;
    return new;
end
$$;
comment on function tidemark.domain_spread() is 'Trigger: keeps event_type.metadata_only and restricted the same as its domain''s.';
revoke all on function tidemark.domain_spread() from public;
