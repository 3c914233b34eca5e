-- What all the sleepers of a process ask together, in one statement, instead of each making a pass that finds nothing.
-- Not a security definer: tables of others are looked at with the rights of the role that runs the worker.
create or replace function tidemark.look(
    owner text,
    lease interval,
    workers text[],
    sources text[],
    shards integer[],
    epochs bigint[])
returns table (n integer, why text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- One look into an index each, whatever the statistics say.
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set row_security = off
-- Who has locked a table keeps nobody else waiting.
set lock_timeout = '20ms'
as $$
#variable_conflict use_column
declare
    r record;
    rel regclass;
    ahead boolean;
    odd boolean;
    unreadable text[] := '{}';
    rests integer[] := '{}';
    looked boolean[] := '{}';
    sweeps xid8[] := '{}';
    horizons timestamptz[] := '{}';
begin
    for r in select s.* from tidemark.look_state(look.owner, look.workers, look.sources, look.shards, look.epochs) s loop
        if r.looks then
            if (r.source).source = any (unreadable) then
                r.why := 'unreadable';
            else
                begin
                    ahead := null; odd := null;
                    rel := format('%I.%I', (r.source).schema_name, (r.source).table_name)::regclass;
                    perform tidemark.source_lock(rel);
                    if tidemark.source_denied(rel) is not null then
                        r.why := 'unreadable';
                    elsif (r.source).safety <> 'capture' then
                        -- Its first column is all that is asked for.
                        execute tidemark.source_ahead(r.source) into ahead using r.after_ts, r.after_id, r.horizon, r.open;
                        if ahead is null and (r.source).safety = 'sequence'
                           and tidemark.source_behind(r.source, rel, r.after_id::bigint) is not null then
                            r.why := 'changed';
                        end if;
                        if r.sweep is not null and ahead is null then
                            perform tidemark.source_guard(rel);
                            execute tidemark.source_odd(r.source) into odd;
                        end if;
                    end if;
                    -- On purpose: it gives the locks of the table and its parts back at once.
                    raise exception using errcode = 'TM009', message = 'looked';
                exception
                    when sqlstate 'TM009' then
                        r.why := coalesce(r.why, case when ahead then 'rows' when odd then 'sweep' end);
                    when others or assert_failure then
                        -- Its own pass meets the error, and records it.
                        r.why := 'unreadable';
                        unreadable := unreadable || (r.source).source;
                end;
            end if;
        end if;
        if r.why is null then
            rests := rests || r.n;
            looked := looked || r.looks;
            sweeps := sweeps || r.sweep;
            horizons := horizons || r.horizon;
        else
            n := r.n; why := r.why;
            return next;
        end if;
    end loop;
    return query
    select l.n, 'locked' from tidemark.look_rest(look.owner, look.lease, look.workers, look.sources, look.shards, look.epochs,
                                                 rests, looked, sweeps, horizons) l (n);
end
$$;
comment on function tidemark.look(text, interval, text[], text[], integer[], bigint[]) is
'Which of the cursors (worker, source, shard) of a process there is something to do for, and why: events, rows, holes (numbers below the watermark have appeared, or are nobody''s), retry, replay (there is more of one to stage), sweep, phase, edited, clock, changed (the table or the handler), unreadable (or it could not be looked at), closed, fenced, locked, gone; for a cursor without an epoch, which waits for the lease: free. What is named is to make a pass, which finds out for itself. The others are told to sleep on: for those with an epoch that owner holds it beats and renews the lease, and makes a sweep that has nothing to read; a cursor that is closed beats. It waits for no lock longer than 20 ms, and reads one row at most of each table. Raises TM006 (isolation level), TM007 (standby).';
grant execute on function tidemark.look(text, interval, text[], text[], integer[], bigint[]) to tidemark_executor;
