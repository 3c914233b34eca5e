create or replace function tidemark.pending_keys(worker text, max_keys integer)
returns table (route_id integer, key text, events bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select p.route_id, p.key, count(*)
    from tidemark.pending p
    join tidemark.worker w on w.id = p.worker_id
    where w.worker = pending_keys.worker and p.key is not null and p.dead_letter_id is null
    group by p.route_id, p.key
    limit max_keys
$$;
comment on function tidemark.pending_keys(text, integer) is 'Ordering keys with events pending on a route, and how many, at most max_keys of them: what an owner of the cursor has to know before it delivers in order.';
revoke all on function tidemark.pending_keys(text, integer) from public;
grant execute on function tidemark.pending_keys(text, integer) to tidemark_executor;
