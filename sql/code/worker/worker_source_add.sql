-- public
-- Not a security definer: it reads the table with the rights of the caller.
create or replace function tidemark.worker_source_add(worker text, source text, reason text default null)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = worker_source_add.worker);
    s constant tidemark.source := (select s from tidemark.source s where s.source = worker_source_add.source);
    shape record;
    first text;
    got record;
    made integer;
begin
    if w.worker is null then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_source_add.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    elsif w.source <> 'table' then
        raise exception using errcode = 'TM005', message = format('worker %s reads the outbox', w.worker),
            hint = 'A worker of tables: select tidemark.worker_set(''name'', ''{"source": "table", "handler": "sql", '
                '"handler_ref": "schema.function"}'');';
    elsif s.source is null then
        raise exception using errcode = 'TM004', message = format('there is no source "%s"', worker_source_add.source),
            hint = 'Sources: select source from tidemark.source;';
    elsif w.coalesce_window is not null and cardinality(s.group_key) = 0 then
        raise exception using errcode = 'TM005',
            message = format('worker %s coalesces, and source %s has no group_key', w.worker, s.source);
    end if;
    shape := tidemark.source_shape(s);
    if s.safety = 'sequence' and shape.problem is null then
        -- Under the lock the shape stays that of the table that is read below.
        perform tidemark.source_guard(shape.relation);
        shape := tidemark.source_shape(s);
    end if;
    if s.safety = 'capture' then
        first := '0';
    elsif s.safety = 'sequence' and shape.problem is null then
        -- Begin below the lowest number that exists or can come.
        got := tidemark.source_look(shape.relation, format('select min(tidemark_row.%I)::numeric as first from %s',
                                                           s.id_column, tidemark.source_row(s)));
        first := greatest(-9223372036854775808, least(got.first, 1, (
            select q.seqmin from pg_sequence q
            where q.seqrelid = tidemark.source_sequence(shape.relation, s.id_column))) - 1)::text;
    end if;
    made := tidemark.worker_cursors_make(w.worker, s.source, first, worker_source_add.reason);
    -- From here on both are locked, and what was looked at before may have been another source, or one shard.
    if made > 0 and s is distinct from (select k from tidemark.source k where k.source = worker_source_add.source) then
        raise exception using errcode = 'serialization_failure',
            message = format('source %s was changed meanwhile', s.source),
            hint = 'Roll back and try again: the worker begins where the source is now.';
    end if;
    if (select k.shards from tidemark.worker k where k.worker = worker_source_add.worker) > 1 and exists (
        select from pg_attribute a
        where a.attrelid = shape.relation
          and a.attname = any (case when cardinality(s.key_columns) > 0 then s.key_columns else array[s.id_column] end)
          and format_type(a.atttypid, null) not in ('smallint', 'integer', 'bigint', 'numeric', 'uuid', 'text',
                                                    'character varying', 'boolean'))
    then
        -- The text of another type depends on settings of the session, and the row's shard would change with them.
        raise exception using errcode = 'TM005',
            message = format('worker %s has shards, and key_columns of source %s are not all integers, numeric, uuid, '
                             'text or boolean', w.worker, s.source),
            hint = 'Set key_columns to others, or use one shard.';
    end if;
    return made;
end
$$;
comment on function tidemark.worker_source_add(text, text, text) is
    'Gives a worker of tables a cursor of the source for each of its shards, at the beginning of the table. Returns '
    'how many it created. Raises TM004, TM005, and 40001 where the source was changed meanwhile.';
grant execute on function tidemark.worker_source_add(text, text, text) to tidemark_executor;
