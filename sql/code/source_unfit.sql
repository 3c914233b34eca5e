create or replace function tidemark.source_unfit(worker tidemark.worker, source tidemark.source, cursor tidemark.worker_cursor)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    shape constant record := tidemark.source_shape(source_unfit.source);
begin
    return shape.problem is not null
        or shape.id_type <> source.id_type or shape.id_collate_c <> source.id_collate_c or shape.timestamp_type <> source.timestamp_type
        or cursor.metadata ->> 'home' <> tidemark.source_home(shape.relation)
        or (tidemark.source_handler(worker, shape.relation)).problem is not null;
end
$$;
comment on function tidemark.source_unfit(tidemark.worker, tidemark.source, tidemark.worker_cursor) is 'True: the table is not what it was, or the worker''s handler cannot be called. A pass (tidemark.source_plan) would be held, and says why.';
revoke all on function tidemark.source_unfit(tidemark.worker, tidemark.source, tidemark.worker_cursor) from public;
