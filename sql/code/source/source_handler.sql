create or replace function tidemark.source_handler(
    worker tidemark.worker,
    definition tidemark.source,
    relation regclass,
    out call text,
    out takes text,
    out problem text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name text[];
    row_type constant oid := (select t.typarray from pg_class c join pg_type t on t.oid = c.reltype
                              where c.oid = source_handler.relation);
    place constant oid[] := array[
        case when definition.timestamp_type ~ 'without' then 'timestamp' else 'timestamptz' end::regtype,
        to_regtype(definition.id_type)];
    -- The types of bounds: two places by time and id, or two ids.
    bounds constant oid[] := case when definition.safety in ('clock', 'declared') then place || place
                                  else place[2:2] || place[2:2] end;
    forms integer;
    runs_as oid; -- null: the role that runs the worker
    owner name;
begin
    case worker.handler
    when 'sql' then
        begin
            name := parse_ident(worker.handler_ref);
        exception when invalid_parameter_value then
            name := '{}';
        end;
        select (array_agg(f.call order by f.rank))[1], (array_agg(f.takes order by f.rank))[1],
               count(distinct f.takes), max(f.runs_as)
        into call, takes, forms, runs_as
        from (
            select format(case p.prorettype when 'jsonb'::regtype then E'%I.%I(\x01)'
                               else E'nullif(%I.%I(\x01)::text, '''')::jsonb' end, n.nspname, p.proname) as call,
                   case p.pronargs when 1 then 'rows' else 'bounds' end as takes,
                   case p.proargtypes[0] when row_type then 1 when 'anyarray'::regtype then 2 else 3 end as rank,
                   case when p.prosecdef then p.proowner end as runs_as
            from pg_proc p join pg_namespace n on n.oid = p.pronamespace
            where cardinality(name) = 2 and n.nspname = name[1] and p.proname = name[2] and p.prokind = 'f'
              and not p.proretset and p.prorettype in ('jsonb'::regtype, 'void'::regtype)
              and (p.pronargs = 1 and p.proargtypes[0] in (row_type, 'anyarray'::regtype)
                   or p.proargtypes::text = array_to_string(bounds, ' '))) f;
        if call is null then
            problem := format('there is no function %s(%s[]), nor (anyarray), nor (%s), that returns void or jsonb',
                              worker.handler_ref, relation,
                              (select string_agg(b::regtype::text, ', ') from unnest(bounds) b));
        elsif forms > 1 then
            problem := format('there are two functions %s, one that takes rows and one that takes bounds: drop one',
                              worker.handler_ref);
        elsif takes = 'bounds' then
            -- Where other rows than those of the page can lie between its bounds.
            problem := format('the function %s takes bounds, which are not exact for a source ', worker.handler_ref)
                || case when definition.safety not in ('clock', 'sequence')
                             then format('with the safety %s', definition.safety)
                        when definition.filter is not null then 'with a filter'
                        when definition.time_zone is not null then 'with a time_zone'
                        when definition.id_collate_c then 'whose ids are text of another collation than "C"'
                        when worker.shards > 1 then 'that is read in shards'
                        -- The function could not tell of which table the bounds are.
                        when (select count(distinct c.source) from tidemark.worker_cursor c
                              where c.worker = worker.worker) > 1 then 'of a worker that has others'
                        when worker.coalesce_window is not null and cardinality(definition.group_key) > 0
                             then 'of which only the latest row of a group is handed over' end || ': let it take rows';
            -- The handler's statements over the table are planned with its own rights and may write, so that code of
            -- the table's owner in a plan must gain nothing by them (see tidemark.source_look).
            select r.rolname into owner
            from pg_class c join pg_roles r on r.oid = c.relowner
            where c.oid in (select unnest(tidemark.relation_tree(source_handler.relation)))
              and not r.rolsuper and r.oid is distinct from runs_as
            order by c.oid = source_handler.relation desc limit 1;
            if problem is null and owner is not null then
                problem := format('the function %s takes bounds, and would read the table of %I with other rights: '
                                  'make it security definer, owned by %2$I', worker.handler_ref, owner);
            elsif problem is null and exists (select from pg_class c where c.oid = source_handler.relation
                                                and c.relrowsecurity and c.relforcerowsecurity) then
                problem := format('the function %s takes bounds, and row security that is forced on the owner of %s '
                                  'could hide rows from it: let it take rows', worker.handler_ref, relation);
            end if;
            call := E'\x03' || replace(call, E'\x01', format(
                case definition.safety when 'sequence' then '$2::%1$s, $4::%1$s' else '$1, $2::%1$s, $3, $4::%1$s' end,
                definition.id_type));
        end if;
    when 'emit' then
        if not exists (select from tidemark.event_type t
                       where t.domain = split_part(worker.handler_ref, '/', 1)
                         and t.type = substr(worker.handler_ref, strpos(worker.handler_ref, '/') + 1)
                         and t.enabled) then
            problem := format('the event type %s is not registered, or not enabled', worker.handler_ref);
        end if;
    else
    end case;
end
$$;
comment on function tidemark.source_handler(tidemark.worker, tidemark.source, regclass) is
    'How to call the worker''s SQL function: with rows (character 1 stands for its argument), or after a character 3 '
    'with bounds ($1, $2 the place behind which the rows are, $3, $4 that of the last one). takes: rows or bounds. '
    'problem: why the handler cannot be called; null: it can.';
grant execute on function tidemark.source_handler(tidemark.worker, tidemark.source, regclass)
    to tidemark_reader, tidemark_executor;
