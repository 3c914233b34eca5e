create or replace function tidemark.source_problem(
    worker tidemark.worker,
    source tidemark.source,
    cursor tidemark.worker_cursor,
    out relation regclass,
    out call text,
    out finding text,
    out problem text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    shape constant record := tidemark.source_shape(source);
    fault constant text := case when source.safety = 'sequence' then tidemark.source_sequence_fault(
                               tidemark.source_sequence(shape.relation, source.id_column)) end;
begin
    finding := 'source_changed';
    problem := coalesce(shape.problem, case
        when shape.id_type <> source.id_type
             then format('column %I is %s now, not %s', source.id_column, shape.id_type, source.id_type)
        when shape.id_collate_c <> source.id_collate_c
             then format('the collation of column %I has changed', source.id_column)
        when shape.timestamp_type <> source.timestamp_type
            then format('column %I is %s now, not %s', source.timestamp_column, shape.timestamp_type,
                        source.timestamp_type)
        when cursor.metadata ->> 'home' <> tidemark.source_home(shape.relation)
            then 'this is not the table that was read before: it was dropped and made anew, or the database was '
                 'restored. Accept the place, or rewind, with tidemark.source_rewind'
        when fault is not null
            then format('%s. Alter the sequence (cache 1 increment 1 no cycle), and end the sessions that keep numbers',
                        fault)
        when source.safety = 'sequence'
             and cursor.metadata ->> 'numbering' is distinct from tidemark.source_numbering(source, shape.relation)
            then format('the sequence of %I was restarted (truncate … restart identity, alter … restart), altered or '
                        'replaced: numbers at or below the watermark %s may be given out again, and would be passed '
                        'over. Read from where they begin again: tidemark worker rewind %s --source %s --to-id N; or, '
                        'if only its options were altered, and no session keeps numbers, continue: --accept',
                 source.id_column, cursor.watermark_id, cursor.worker, cursor.source) end);
    if problem is not null then
        return;
    end if;
    relation := shape.relation;
    finding := 'source_misconfigured';
    select h.call, h.problem into call, problem from tidemark.source_handler(worker, source, relation) h;
end
$$;
comment on function tidemark.source_problem(tidemark.worker, tidemark.source, tidemark.worker_cursor) is
    'Why a worker cannot read a source, and the kind of its finding: the table has changed, or the worker''s handler '
    'cannot be called. problem null: the worker can read it; then relation is the table, and call is the call of the '
    'handler.';
