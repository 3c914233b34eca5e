create or replace function tidemark.pass_payload(
    worker text, epoch bigint, seq bigint, event_id uuid, replay_on integer,
    shard integer default 0)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    if not exists (select from tidemark.heartbeat h
                   where h.executor_id = tidemark.executor_id(pass_payload.worker, 'outbox', pass_payload.shard)
                     and h.lease_epoch = pass_payload.epoch and h.lease_timeline = tidemark.timeline()) then
        perform tidemark.lease_check(pass_payload.worker, pass_payload.epoch, 'outbox', pass_payload.shard); -- raises
    end if;
    return coalesce((
        select l.event_snapshot -> 'payload' from tidemark.pending p
        join tidemark.dead_letter l on l.id = p.dead_letter_id
        where p.worker_id = (select w.id from tidemark.worker w where w.worker = pass_payload.worker)
          and p.route_id = pass_payload.replay_on and p.seq = pass_payload.seq
          and l.event_id = pass_payload.event_id), (
        select o.payload from tidemark.outbox o where o.seq = pass_payload.seq and o.event_id = pass_payload.event_id));
end
$$;
comment on function tidemark.pass_payload(text, bigint, bigint, uuid, integer, integer) is
    'For the owner of the lease epoch: the payload of an event that tidemark.pass_read returned without it; for a '
    'replay on the route replay_on, the payload of its dead letter. Null: the event is gone from the log. Raises '
    'TM011.';
grant execute on function tidemark.pass_payload(text, bigint, bigint, uuid, integer, integer) to tidemark_executor;
