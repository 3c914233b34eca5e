create or replace function tidemark.worker_set(worker text, changes jsonb default '{}', reason text default null)
returns setof tidemark.worker
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    row_ tidemark.worker;
begin
    perform set_config('tidemark.reason', coalesce(worker_set.reason, ''), true);
    perform tidemark.changes_check('worker', worker_set.changes, 'tidemark.worker', array['id', 'worker', 'source', 'handler']);
    insert into tidemark.worker (worker) values (worker_set.worker) on conflict do nothing;
    insert into tidemark.worker_cursor (worker, source) values (worker_set.worker, 'outbox') on conflict do nothing;
    insert into tidemark.heartbeat (executor_id) values (worker_set.worker || '/outbox/0') on conflict do nothing;
    row_ := (select jsonb_populate_record(w, changes) from tidemark.worker w where w.worker = worker_set.worker for update);
    update tidemark.heartbeat h set domain_scope = coalesce(row_.domains, '{}')
    where h.executor_id = worker_set.worker || '/outbox/0';
    return query
    update tidemark.worker w
    set domains = row_.domains, read_order = row_.read_order, hole_limit = row_.hole_limit, description = row_.description
    where w.worker = worker_set.worker returning w.*;
end
$$;
comment on function tidemark.worker_set(text, jsonb, text) is 'Creates a worker, with its cursor at the beginning of the log and its heartbeat, or changes the named columns of it. Its gate stays as it is: closed for a new one. Returns the row. Raises TM005 for an unknown column.';
revoke all on function tidemark.worker_set(text, jsonb, text) from public;
grant execute on function tidemark.worker_set(text, jsonb, text) to tidemark_admin;
