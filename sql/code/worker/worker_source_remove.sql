-- public
create or replace function tidemark.worker_source_remove(worker text, source text, reason text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    id constant integer := (select w.id from tidemark.worker w where w.worker = worker_source_remove.worker);
    waiting bigint;
    topic constant boolean := worker_source_remove.source like 'kafka:%';
    gate constant text := case when topic then tidemark.closed_gate(worker_source_remove.worker) end;
    part record;
    removed integer;
begin
    if coalesce(btrim(worker_source_remove.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'taking a source from a worker needs a reason';
    elsif worker_source_remove.source = 'outbox' then
        raise exception using errcode = 'TM005',
            message = format('worker %s reads the log, and nothing else', worker_source_remove.worker);
    end if;
    -- Wait for a pass under way, and lock rows in its order (tidemark.command_passes_begin, command_passes_end).
    perform from tidemark.heartbeat h
    join tidemark.worker_cursor c on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
    where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source
    order by c.shard for update of h;
    perform from tidemark.worker_cursor c
    where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source
    order by c.shard for update;
    -- A daemon that has the topic need not read it just now, and would begin at its first record.
    for part in
        select h.executor_id, h.lease_until > clock_timestamp() as leased, h.lease_owner,
               greatest(h.last_beat_at, c.updated_at) as read_at,
               -- Until an operator accepts the topic as it is (tidemark.command_seek).
               c.metadata ? 'topic_id' and f.id is not null as held
        from tidemark.worker_cursor c
        join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
        left join tidemark.finding f
          on f.kind = 'command_partition_held' and f.subject = h.executor_id and f.closed_at is null
        where topic and c.worker = worker_source_remove.worker and c.source = worker_source_remove.source
        order by leased desc nulls last, held desc, read_at desc
    loop
        if part.leased then
            raise exception using errcode = 'TM005',
                message = format('%s reads %s', part.lease_owner, worker_source_remove.source),
                hint = 'Take the topic out of commands.topics of its configuration first, and restart it.';
        elsif gate is not null then
            raise exception using errcode = 'TM005',
                message = format('whether a daemon has %s cannot be seen: closed by %s', worker_source_remove.source,
                                 gate),
                hint = 'Open it first (paused: tidemark worker resume commands): the daemons that have the topic read '
                    'it then.';
        elsif part.held then
            raise exception using errcode = 'TM005',
                message = format('%s is held, and would be read from its first record', part.executor_id),
                hint = 'See tidemark finding list. To go on, or where no daemon is to read the topic any more, name an '
                    'offset by tidemark.command_seek; five minutes after that the topic can be detached.';
        elsif part.read_at > clock_timestamp() - interval '5 minutes' then
            raise exception using errcode = 'TM005',
                message = format('%s was in use at %s: a daemon that restarts may have it', part.executor_id,
                                 date_trunc('second', part.read_at)),
                hint = 'Take the topic out of commands.topics of every configuration, restart those daemons, and '
                    'detach it when nothing has read it for five minutes.';
        end if;
    end loop;
    select count(*) into waiting from tidemark.pending_row p
    where p.worker_id = id and p.source = worker_source_remove.source;
    if waiting > 0 then
        raise exception using errcode = 'TM005',
            message = format('worker %s has %s rows of source %s that failed and wait', worker_source_remove.worker,
                             waiting, worker_source_remove.source),
            hint = 'See them with tidemark pending list; they end as handled or as dead letters.';
    end if;
    insert into tidemark.audit (action, object, reason, before)
    select 'worker_source_remove', 'worker_cursor ' || tidemark.executor_id(c.worker, c.source, c.shard),
           worker_source_remove.reason, to_jsonb(c)
    from tidemark.worker_cursor c where c.worker = worker_source_remove.worker
                                    and c.source = worker_source_remove.source;
    delete from tidemark.source_ledger l where l.worker_id = id and l.source = worker_source_remove.source;
    delete from tidemark.source_count k where k.worker_id = id and k.source = worker_source_remove.source;
    removed := tidemark.cursors_delete(worker_source_remove.worker, worker_source_remove.source);
    if removed = 0 then
        raise exception using errcode = 'TM004',
            message = format('worker %s has no cursor of source %s', worker_source_remove.worker,
                             worker_source_remove.source),
            hint = 'select worker, source, shard from tidemark.worker_cursor;';
    end if;
    return removed;
end
$$;
comment on function tidemark.worker_source_remove(text, text, text) is
    'Takes a source from a worker: deletes its cursors, keeps them in tidemark.audit, and closes their findings. If '
    'the worker gets the source again, it starts at the beginning of the table. Of the worker commands: a topic, as '
    'kafka:TOPIC, that no daemon is to read any more; if one does again, it starts at the first record. Waits for a '
    'pass under way. Returns how many cursors it deleted. Raises TM004, TM005 (no reason, or failed rows still wait; '
    'of a topic also: a daemon reads it or has in the last five minutes, a partition is held, or a gate of commands is '
    'closed).';
grant execute on function tidemark.worker_source_remove(text, text, text) to tidemark_admin;
