-- A snapshot of before a change shows the row of before. Its xmax is the transaction that replaced it: one that has
-- committed and that the snapshot does not see has changed the row since. A lock of the row would show it too, and hold
-- up the operator.
create or replace function tidemark.replaced_since_snapshot(id xid)
returns boolean
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select case when id <> '0' and not pg_visible_in_snapshot(x.id, pg_current_snapshot())
                then pg_xact_status(x.id) = 'committed' else false end
    -- A transaction of now is less than half of all numbers away.
    from tidemark.full_xid(id, (pg_current_xact_id()::text::bigint + 2147483647)::text::xid8) x (id)
$$;
comment on function tidemark.replaced_since_snapshot(xid) is
    'True: a transaction that the snapshot does not see has changed or deleted the row whose xmax is id, and has '
    'committed.';
