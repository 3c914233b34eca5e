create or replace function tidemark.contract_problem(route tidemark.inbound_route)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- A payload has captured columns under "columns", and the fields given to tidemark.inbound_emit at the top.
    select format('the schema of %s/%s does not name %s', route.domain, route.type,
                  string_agg(quote_ident(p.name), ', ' order by p.name))
    from tidemark.event_type t
    cross join lateral (
        select case route.source_object_kind when 'table' then t.schema #> '{properties,columns}'
                    else t.schema end) s (of_)
    cross join lateral unnest(route.payload_columns) p (name)
    where t.domain = route.domain and t.type = route.type and s.of_ -> 'additionalProperties' = 'false'
      and not s.of_ ? 'patternProperties' and not s.of_ ? '$ref'
      and not coalesce(s.of_ -> 'properties', '{}') ? p.name
    group by t.domain, t.type
$$;
comment on function tidemark.contract_problem(tidemark.inbound_route) is
    'The columns of an inbound route''s contract that the schema of its event type does not name, where that schema is '
    'closed (additionalProperties false). Null: none. The SQL check at emit does not look inside "columns", so this '
    'check keeps content out of a captured payload.';
grant execute on function tidemark.contract_problem(tidemark.inbound_route) to tidemark_reader;
