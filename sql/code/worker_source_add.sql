-- Not a security definer: it looks at the table with the rights of whoever asks.
create or replace function tidemark.worker_source_add(worker text, source text, reason text default null)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = worker_source_add.worker);
    s constant tidemark.source := (select s from tidemark.source s where s.source = worker_source_add.source);
    shape record;
    first text;
begin
    if w.worker is null then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_source_add.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    elsif w.source <> 'table' then
        raise exception using errcode = 'TM005', message = format('worker %s reads the outbox', w.worker),
            hint = 'A worker of tables: select tidemark.worker_set(''name'', ''{"source": "table", "handler": "sql", "handler_ref": "schema.function"}'');';
    elsif s.source is null then
        raise exception using errcode = 'TM004', message = format('there is no source "%s"', worker_source_add.source),
            hint = 'Sources: select source from tidemark.source;';
    elsif w.coalesce_window is not null and cardinality(s.group_key) = 0 then
        raise exception using errcode = 'TM005', message = format('worker %s coalesces, and source %s has no group_key', w.worker, s.source);
    end if;
    shape := tidemark.source_shape(s);
    if s.safety = 'capture' then
        first := '0';
    elsif s.safety = 'sequence' and shape.problem is null then
        -- Below the lowest number that there is or can come.
        execute format('select (least(min(t.%I), 1) - 1)::text from %s t', s.id_column, shape.relation) into first;
        first := coalesce(first, '0');
    end if;
    return tidemark.worker_cursors_make(w.worker, s.source, first, worker_source_add.reason);
end
$$;
comment on function tidemark.worker_source_add(text, text, text) is 'Gives a worker of tables a cursor of the source for each of its shards, at the beginning of the table. Returns how many it made. Raises TM004, TM005.';
revoke all on function tidemark.worker_source_add(text, text, text) from public;
grant execute on function tidemark.worker_source_add(text, text, text) to tidemark_executor;
