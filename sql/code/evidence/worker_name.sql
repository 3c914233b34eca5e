create or replace view tidemark.worker_name as
select w.id, w.worker from tidemark.worker w
union all
select f.id, f.name from tidemark.former_name f where f.kind = 'worker';
comment on view tidemark.worker_name is
    'The name of each worker that evidence may name, those that were deleted included.';
grant select on tidemark.worker_name to tidemark_reader, tidemark_executor;
