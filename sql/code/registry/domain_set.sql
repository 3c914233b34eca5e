-- public
create or replace function tidemark.domain_set(domain text, changes jsonb default '{}', reason text default null)
returns setof tidemark.domain
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    row_ tidemark.domain;
begin
    perform set_config('tidemark.reason', coalesce(domain_set.reason, ''), true);
    perform tidemark.changes_check('domain', domain_set.changes, 'tidemark.domain', array['domain']);
    insert into tidemark.domain (domain, restricted) values (domain_set.domain, domain_set.domain = 'system')
    on conflict do nothing;
    row_ := (select jsonb_populate_record(d, changes) from tidemark.domain d
             where d.domain = domain_set.domain for update);
    return query
    update tidemark.domain d set metadata_only = row_.metadata_only, restricted = row_.restricted,
                                 description = row_.description, payload_retention = row_.payload_retention
    where d.domain = domain_set.domain returning d.*;
end
$$;
comment on function tidemark.domain_set(text, jsonb, text) is
    'Creates a domain, or changes the named columns of one. Returns the row. payload_retention: older payloads are '
    'erased, those that no worker, pending delivery or replay needs by then. A worker that is rewound behind them, or '
    'begins there, delivers {"erased": time} to routes that have no evidence for the event. Raises TM005 for an '
    'unknown column.';
grant execute on function tidemark.domain_set(text, jsonb, text) to tidemark_admin;
