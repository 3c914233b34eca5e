-- Every statement over another role's table is run here. PostgreSQL evaluates expressions of the table's indexes and
-- statistics while it plans the statement, with the reader's rights. tidemark.source_guard refuses a table with such
-- code of its owner, but she can commit an index or statistics between that check and the end of the plan, and a
-- REINDEX makes the plan wait as long as she likes. So the statement runs in a read-only subtransaction, which is
-- rolled back: her code can neither write, nor leave settings, cursors, locks, temporary tables or triggers behind. A
-- prepared statement would outlast the rollback, so a new one is dropped and is an error. An advisory lock of the
-- session outlasts it, too: any login may hold one, and Tidemark waits for none.
create or replace function tidemark.source_look(
    relation regclass,
    statement text,
    ts timestamptz default null,
    id text default null,
    upto timestamptz default null,
    rows_limit integer default null,
    ids text[] default null,
    shard integer default null,
    xid bigint default null,
    holes int8multirange default null,
    last_ts timestamptz default null,
    last_id text default null,
    worker_id integer default null,
    keep_xid bigint default null)
returns record
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
declare
    got record;
    looked boolean := false;
    known constant text[] := tidemark.session_statements();
begin
    begin
        perform tidemark.source_guard(source_look.relation);
        perform set_config('transaction_read_only', 'on', true);
        execute statement into got
        using ts, id, upto, rows_limit, ids, shard, xid, holes, last_ts, last_id, worker_id, keep_xid;
        looked := true;
        raise exception using errcode = 'TM009', message = 'looked';
    exception when others or assert_failure or query_canceled then
        -- Also after an error, which may be the owner's.
        if tidemark.session_statements_drop(known) then
            raise insufficient_privilege using message = format('code of the owner of %s prepared a statement in this '
                                                                'session; it was dropped', source_look.relation);
        elsif not looked or sqlstate = '57014' then
            raise;
        end if;
    end;
    return got;
end
$$;
comment on function tidemark.source_look(regclass, text, timestamptz, text, timestamptz, integer, text[], integer,
                                         bigint, int8multirange, timestamptz, text, integer, bigint) is
    'Runs a statement that reads another role''s table, and returns its first row. Checks the table first '
    '(tidemark.source_guard), and reads in a read-only subtransaction that is rolled back: it keeps no lock. The other '
    'arguments are the parameters of the statement, $1 to $12, in the types of tidemark.source_query. Raises 42501 '
    'where the caller must not read the table.';
grant execute on function tidemark.source_look(regclass, text, timestamptz, text, timestamptz, integer, text[], integer,
                                               bigint, int8multirange, timestamptz, text, integer, bigint)
    to tidemark_reader, tidemark_executor;
