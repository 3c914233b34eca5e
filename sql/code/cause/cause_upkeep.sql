-- A call of maintain that does all its work measures the database (tidemark.storage_note): one that fails, or that
-- another session's row locks hold up, takes that back. What of the partitions a call leaves undone it notes there.
create or replace function tidemark.cause_upkeep()
returns setof tidemark.trouble
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- The log is read at its ends only, whatever its statistics say.
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    patience constant interval := '5 minutes';
    sample constant tidemark.storage_sample := (select s from tidemark.storage_sample s);
    -- Not known where the clock was set back since; by less than 30 seconds is not recorded, and soon made up. What was
    -- before a step forward looks older than it is.
    last_ constant timestamptz := case when sample.at <= clock + interval '1 minute' then sample.at end;
    stepped constant timestamptz := (select max(s.at) from tidemark.clock_step s
                                     where s.step > interval '0' or last_ is null);
    daemons record;
    began timestamptz;
    newest timestamptz;
    holders record;
begin
    if last_ >= clock - patience then
        began := greatest(sample.undone_since, stepped);
        if sample.undone is not null and began < clock - interval '15 minutes' then
            select string_agg(h.who || case when h.idle then ', idle' else '' end
                              || coalesce(', in its transaction for ' || date_trunc('second', clock - h.began), ''),
                              '; ' order by h.began nulls last) as who,
                   array_agg(h.sql order by h.began nulls last) filter (where h.idle is distinct from false) as sql
            into holders
            from (select h.* from tidemark.lock_holders('^(outbox|attempt|decision)(_p[0-9]+|_rest)?$', null) h
                  order by h.began nulls last limit 5) h;
            return next row(
                'upkeep_failing', 'maintain', case when began < clock - interval '6 hours' then 'bad' else 'warn' end,
                sample.undone_since,
                format('for %s each call of tidemark.maintain has left work undone: %s; %s. The log grows meanwhile',
                       date_trunc('second', clock - began), sample.undone,
                       coalesce('what has the log or its evidence locked now, readers too: ' || holders.who,
                                'nothing has the log locked now, so that transactions on it must be short and many')),
                null, '{}', holders.sql || text 'select * from tidemark.maintain();', '{}')::tidemark.trouble;
        end if;
        return;
    end if;
    -- A daemon calls maintain when it starts, and each minute.
    select min(case when h.state = 'alive' then d.started end) as started,
           string_agg(h.executor_id, ', ' order by h.executor_id) filter (where h.state = 'alive') as alive,
           min(h.last_beat_at) filter (where h.state = 'alive') as beat,
           bool_or(h.state = 'silent') as silent
    into daemons
    from tidemark.heartbeat_health h
    join tidemark.heartbeat b on b.executor_id = h.executor_id
    cross join lateral (
        select case when jsonb_typeof(b.payload -> 'uptime') = 'number'
                         then b.last_beat_at
                              - make_interval(secs => greatest(least((b.payload ->> 'uptime')::numeric, 3e9),
                                                               0)::double precision)
                    else b.watched_since end as started) d
    where h.executor_id like 'daemon/%';
    if daemons.alive is not null then
        -- Where the last beat is of the old clock, too, the next one records the step (tidemark.clock_compare).
        began := greatest(last_, daemons.started, stepped,
                          case when last_ is null and daemons.beat > clock then clock end);
        newest := clock;
    elsif daemons.silent then
        return; -- daemon_dead tells it
    else
        began := greatest(coalesce(last_, (select o.created_at from tidemark.outbox o order by o.seq limit 1)),
                          stepped);
        newest := (select o.created_at from tidemark.outbox o order by o.seq desc limit 1);
    end if;
    if newest > began + patience then
        return next row(
            'upkeep_failing', 'maintain', 'bad', last_,
            format('%s; %s. Partitions of the log may not be made ahead, and nothing is erased or closed',
                   coalesce('the last call of tidemark.maintain that did all its work was '
                                || date_trunc('second', clock - last_) || ' ago',
                            format('no call of tidemark.maintain has done all its work %s',
                                   case when sample.at > clock then 'since the clock was set back' else 'yet' end)),
                   coalesce('each call by ' || daemons.alive || ' has failed since, or was held up',
                            format('the newest event is %s old, and no daemon runs that calls it',
                                   date_trunc('second', clock - newest)))),
            null, '{}', '{select * from tidemark.maintain();}', '{tidemark maintain}')::tidemark.trouble;
    end if;
end
$$;
comment on function tidemark.cause_upkeep() is
    'The part of tidemark.cause about tidemark.maintain: upkeep_failing, where no call has done all its work for 5 '
    'minutes, while a daemon lives or the log has newer events; or where for 15 minutes each call has left partitions '
    'undone, with the transactions that have them locked (bad: for 6 hours).';
grant execute on function tidemark.cause_upkeep() to tidemark_reader, tidemark_executor;
