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
    reader text;
    removed integer;
begin
    if coalesce(btrim(worker_source_remove.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'taking a source from a worker needs a reason';
    elsif worker_source_remove.source = 'outbox' then
        raise exception using errcode = 'TM005',
            message = format('worker %s reads the log, and nothing else', worker_source_remove.worker);
    end if;
    -- Wait for a pass under way, and lock rows in its order.
    perform from tidemark.heartbeat h
    join tidemark.worker_cursor c on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
    where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source for update of h;
    select h.lease_owner into reader from tidemark.heartbeat h
    join tidemark.worker_cursor c on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
    where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source
      and c.source like 'kafka:%' and h.lease_until > clock_timestamp() limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('%s reads %s', reader, worker_source_remove.source),
            hint = 'Take the topic out of commands.topics of its configuration first, and restart it.';
    end if;
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
    delete from tidemark.heartbeat h using tidemark.worker_cursor c
    where c.worker = worker_source_remove.worker and c.source = worker_source_remove.source
      and h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard);
    delete from tidemark.worker_cursor c where c.worker = worker_source_remove.worker
                                           and c.source = worker_source_remove.source;
    get diagnostics removed = row_count;
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
    'Takes a source from a worker: deletes its cursors, and keeps them in tidemark.audit. If the worker gets the '
    'source again, it starts at the beginning of the table. Of the worker commands: a topic, as kafka:TOPIC, that no '
    'daemon reads any more; if one does again, it starts at the first record. Waits for a pass under way. Returns how '
    'many cursors it deleted. Raises TM004, TM005 (no reason, failed rows still wait, or a daemon reads the topic).';
grant execute on function tidemark.worker_source_remove(text, text, text) to tidemark_admin;
