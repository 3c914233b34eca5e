create or replace function tidemark.is_transient(sqlstate_ text)
returns boolean
language sql immutable parallel safe
as $$
    select pg_catalog.left(sqlstate_, 2) in ('08', '25', '40', '53', '57', '58', 'TM', 'XX') or sqlstate_ = '55P03'
$$;
comment on function tidemark.is_transient(text) is 'True: the error is the surroundings'' fault, not the event''s: connection, transaction state, deadlock, resources, shutdown, system, lock timeout, and our own. The pass is given up whole and repeated; nothing is dead-lettered.';
revoke all on function tidemark.is_transient(text) from public;
grant execute on function tidemark.is_transient(text) to tidemark_executor;
