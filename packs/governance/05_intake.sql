-- Workers. A page must cost one index lookup per row, however many candidates exist. So candidates are looked up one by
-- one, "lateral … limit 1": with the planner's estimates for a table that was not analyzed yet, a page took a minute.

create or replace function governance.backfill(rows anyarray)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    mapping constant governance.watched := governance.mapping(pg_typeof(rows));
    version constant text := (governance.current_ruleset()).ruleset_version;
    id_column constant text := (select s.id_column from tidemark.source s where s.source = mapping.source);
    added bigint;
begin
    -- Insert in the order of the key, so that the index pages are written one after another. An existing candidate
    -- costs an index lookup and no write. A row without a key violates a constraint of the table, and fails.
    execute format('
with page as (
    select distinct on (p.k) p.* from (select %s, row_number() over () as n from unnest($1) r) p order by p.k, p.n),
added as (
    insert into governance.candidate (ruleset_version, canonical_address, collection_name, entity_code, source, item_id)
    select $2, p.address, p.collection, p.entity, $3, p.item
    from page p left join lateral (
        select true as there from governance.candidate c
        where c.candidate_key = p.k and c.ruleset_version = $2 limit 1) c on true
    where c.there is null
    order by p.k
    on conflict (candidate_key, ruleset_version) do nothing
    returning 1)
select count(*) from added', governance.names(mapping, id_column))
    into added using rows, version, mapping.source;
    perform governance.tally_add('gov_backfill_sweep', version, 'candidate', array[''], array[added]);
    return governance.checkpoint('gov_backfill_sweep', jsonb_build_object(
        'rows_seen', cardinality(rows), 'added', added, 'dirty_marked', 0, 'ruleset_version', version));
end
$$;
comment on function governance.backfill(anyarray) is
    'Handler of gov_backfill_sweep: adds a candidate for each row of a birth table that has none.';

create or replace function governance.intake(rows anyarray)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    mapping constant governance.watched := governance.mapping(pg_typeof(rows));
    version constant text := (governance.current_ruleset()).ruleset_version;
    id_column constant text := (select s.id_column from tidemark.source s where s.source = mapping.source);
    birth constant boolean := mapping.kind = 'birth';
    unknown bigint;
    marked bigint;
    keys jsonb;
begin
    -- A candidate that does not exist yet needs no mark: its first judgement will use the data of that time. The row
    -- that made it needs none either. A waiting mark does not replace a new one: the scan may be using it with older
    -- data.
    execute format('
with page as (
    select distinct on (p.k) p.* from (select %s, row_number() over () as n from unnest($1) r) p
    order by p.k, p.n desc),
hit as materialized (
    select p.k, p.item, c.id, $4 and c.source = $3 and c.item_id = p.item as own
    from page p left join lateral (
        select c.id, c.source, c.item_id from governance.candidate c
        where c.candidate_key = p.k and c.ruleset_version = $2 limit 1) c on true),
marked as (
    insert into governance.mark (candidate_id, reason, source, item_id)
    select h.id, case when $4 then ''reborn'' else ''changed'' end, $3, h.item from hit h
    where h.id is not null and not h.own order by h.id
    returning 1)
select count(*) filter (where h.id is null), (select count(*) from marked),
       case when governance.tells(''candidate_dirtied'')
            then jsonb_agg(jsonb_build_object(''candidate_key'', h.k, ''ruleset_version'', $2))
                 filter (where h.id is not null and not h.own) end
from hit h', governance.names(mapping, id_column))
    into unknown, marked, keys using rows, version, mapping.source, birth;
    perform governance.tally_add('gov_handoff_intake', version, 'mark', array[''], array[marked]);
    if keys is not null then
        perform governance.tell('candidate_dirtied', keys);
    end if;
    return governance.checkpoint('gov_handoff_intake', jsonb_build_object(
        'rows_seen', cardinality(rows), 'dirty_marked', marked, 'unknown', unknown, 'ruleset_version', version,
        -- For the storm guard: the number of groups touched, and of all groups.
        'touched', marked, 'groups', (
            select coalesce(sum(t.items), 0) from governance.tally t
            where t.ruleset_version = version and t.stage = 'candidate')));
end
$$;
comment on function governance.intake(anyarray) is
    'Handler of gov_handoff_intake: marks the candidates that the rows of a watched table name. unknown: rows without '
    'a candidate yet.';

create or replace function governance.gate(rows governance.candidate[])
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    rules constant governance.ruleset := governance.current_ruleset();
    states text[];
begin
    execute format('
with gated as (
    insert into governance.gated (candidate_id, input_quality_state)
    select c.id, %s(c)
    from unnest($1) c
    left join lateral (select true as there from governance.gated g where g.candidate_id = c.id limit 1) g on true
    where c.ruleset_version = $2 and g.there is null
    order by c.id
    on conflict (candidate_id) do nothing
    returning input_quality_state)
select array_agg(g.input_quality_state) from gated g', governance.rule_name(rules.input_rule))
    into states using rows, rules.ruleset_version;
    perform governance.tally_add('gov_input_gate', rules.ruleset_version, 'input', states,
                                 array_fill(1::bigint, array[coalesce(cardinality(states), 0)]));
    return governance.checkpoint('gov_input_gate', jsonb_build_object(
        'rows_seen', cardinality(rows), 'gated', coalesce(cardinality(states), 0), 'dirty_marked', 0,
        'ruleset_version', rules.ruleset_version));
end
$$;
comment on function governance.gate(governance.candidate[]) is
    'Handler of gov_input_gate: stores the input quality of new candidates.';
