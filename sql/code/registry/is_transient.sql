create or replace function tidemark.is_transient(sqlstate_ text)
returns boolean
language sql immutable parallel safe
as $$
    select pg_catalog.left(sqlstate_, 2) in ('08', '25', '40', '53', '57', '58')
        or sqlstate_ in ('55P03', 'XX001', 'XX002', 'TM009')
$$;
comment on function tidemark.is_transient(text) is
    'True where the error is the surroundings'' fault and not the event''s: connection, transaction state, deadlock, '
    'resources, shutdown, system, damaged data, lock timeout, or a gate that was closed. A pass that meets it outside '
    'of a delivery is given up and repeated; an event whose target raises it is tried again by the route''s policy.';
grant execute on function tidemark.is_transient(text) to tidemark_executor;
