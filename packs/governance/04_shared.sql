-- Functions that the workers' functions share.

create or replace function governance.worker_names()
returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select array['gov_backfill_sweep', 'gov_handoff_intake', 'gov_input_gate', 'gov_candidate_scan',
                 'gov_periodic_full_audit']
$$;
comment on function governance.worker_names() is 'The five workers of the pack.';

create or replace function governance.mapping(row_type regtype)
returns governance.watched
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    found_ governance.watched;
begin
    select w.* into found_
    from pg_type a join pg_type t on t.oid = a.typelem join pg_class c on c.oid = t.typrelid
    join pg_namespace n on n.oid = c.relnamespace
    join tidemark.source s on s.schema_name = n.nspname and s.table_name = c.relname
    join governance.watched w on w.source = s.source
    where a.oid = row_type order by w.source limit 1;
    if found_ is null then
        raise exception using errcode = '42P01',
            message = format('governance does not watch the table of %s', row_type),
            hint = 'Attach it: select governance.watch(''schema.table'', ''birth'' or ''change'');';
    end if;
    return found_;
end
$$;
comment on function governance.mapping(regtype) is
    'The columns of a watched table that name the candidate; row_type: array of its rows. Raises 42P01 where the table '
    'is not watched.';

create or replace function governance.as_text(name text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select format('nullif(format(''%%s'', r.%1$I), case when r.%1$I is null then '''' end)', name)
    where name is not null
$$;
comment on function governance.as_text(text) is
    'SQL for a column of the row r as text: it uses the column''s output function, never a cast, which the owner of '
    'the type may have made.';

create or replace function governance.names(mapping governance.watched, id_column text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select format('coalesce(%1$s, case when strpos(%2$s, '':'') = 0 then %2$s || '':'' || %3$s end) collate "C" as k, '
                  '%1$s as address, %2$s as collection, %3$s as entity, %4$s as item',
                  coalesce(governance.as_text(mapping.address_column), 'null::text'),
                  governance.as_text(mapping.collection_column), governance.as_text(mapping.entity_column),
                  governance.as_text(id_column))
$$;
comment on function governance.names(governance.watched, text) is
    'SQL for the columns k (the candidate''s key; null: the row cannot be a candidate), address, collection, entity '
    'and item of a watched row r.';

create or replace function governance.tally_add(
    worker text, ruleset_version text, stage text, states text[], items bigint[])
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    insert into governance.tally as t (ruleset_version, stage, state, worker, items)
    select tally_add.ruleset_version, tally_add.stage, d.state, tally_add.worker, sum(d.items)
    from unnest(states, tally_add.items) d (state, items)
    group by d.state having sum(d.items) <> 0
    order by d.state
    on conflict (ruleset_version, stage, state, worker) do update set items = t.items + excluded.items
$$;
comment on function governance.tally_add(text, text, text, text[], bigint[]) is 'Adds to the counts of a stage.';

create or replace function governance.tells(type text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from tidemark.event_type t
                   where t.domain = 'governance' and t.type = tells.type and t.enabled)
$$;
comment on function governance.tells(text) is
    'True: events of this type are emitted. An install turns off the types that come once per candidate.';

create or replace function governance.tell(type text, payloads jsonb)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select count(*) from tidemark.emit_all((
        select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('domain', 'governance', 'type', tell.type,
                                                                       'payload', p,
            'key', coalesce(p -> 'candidate_key', p -> 'subject'), 'severity', p -> 'severity'))), '[]')
        from jsonb_array_elements(payloads) p
        where governance.tells(tell.type)), false, true)
$$;
comment on function governance.tell(text, jsonb) is
    'Emits events of the domain governance, with these payloads, where the type is on. It is the workers'' only way to '
    'emit.';

create or replace function governance.checkpoint(worker text, counts jsonb)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if governance.tells(worker || '.heartbeat') then
        perform governance.tell(worker || '.heartbeat', jsonb_build_array(counts));
    end if;
    return counts;
end
$$;
comment on function governance.checkpoint(text, jsonb) is
    'The result of a worker''s function for a page: last_run_summary.checkpoint keeps it until the next page that has '
    'rows. Source: S2 39.6.';
