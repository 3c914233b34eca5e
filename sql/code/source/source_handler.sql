create or replace function tidemark.source_handler(
    worker tidemark.worker, relation regclass, out call text, out problem text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name text[];
    row_type constant oid := (select t.typarray from pg_class c join pg_type t on t.oid = c.reltype
                              where c.oid = source_handler.relation);
begin
    case worker.handler
    when 'sql' then
        begin
            name := parse_ident(worker.handler_ref);
        exception when invalid_parameter_value then
            name := '{}';
        end;
        select format(case p.prorettype when 'jsonb'::regtype then E'%I.%I(\x01)'
                           else E'nullif(%I.%I(\x01)::text, '''')::jsonb' end,
                      n.nspname, p.proname)
        into call
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where cardinality(name) = 2 and n.nspname = name[1] and p.proname = name[2] and p.prokind = 'f'
          and p.pronargs = 1 and not p.proretset
          and p.prorettype in ('jsonb'::regtype, 'void'::regtype)
          and p.proargtypes[0] in (row_type, 'anyarray'::regtype)
        order by p.proargtypes[0] = row_type desc limit 1;
        if call is null then
            problem := format('there is no function %s(%s[]), nor (anyarray), that returns void or jsonb',
                              worker.handler_ref, relation);
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
comment on function tidemark.source_handler(tidemark.worker, regclass) is
    'How to call the worker''s SQL function (character 1 stands for its argument). problem: why the handler cannot be '
    'called; null: it can.';
grant execute on function tidemark.source_handler(tidemark.worker, regclass) to tidemark_reader, tidemark_executor;
