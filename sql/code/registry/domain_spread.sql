create or replace function tidemark.domain_spread()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_table_name = 'domain' then
        update tidemark.event_type t set metadata_only = new.metadata_only, restricted = new.restricted
        where t.domain = new.domain;
    else
        -- A change of the domain at the same time waits for this row, and then finds it.
        select d.metadata_only, d.restricted into new.metadata_only, new.restricted
        from tidemark.domain d where d.domain = new.domain for share;
    end if;
    return new;
end
$$;
comment on function tidemark.domain_spread() is
    'Trigger: keeps metadata_only and restricted of an event type the same as those of its domain.';

create or replace trigger domain_spread_down
after update of metadata_only, restricted on tidemark.domain
for each row execute function tidemark.domain_spread();
comment on trigger domain_spread_down on tidemark.domain is 'Types follow their domain.';

create or replace trigger event_type_spread
before insert or update on tidemark.event_type
for each row execute function tidemark.domain_spread();
comment on trigger event_type_spread on tidemark.event_type is 'A type is as its domain is.';
