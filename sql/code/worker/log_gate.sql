create or replace function tidemark.log_gate(worker text, shard integer)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    gate constant text := tidemark.closed_gate(log_gate.worker);
    shards constant integer := (select w.shards from tidemark.worker w where w.worker = log_gate.worker);
    got record;
begin
    if gate is null and shards > 1 then
        got := tidemark.shard_share(log_gate.worker, (
            select h.lease_owner from tidemark.heartbeat h
            where h.executor_id = tidemark.executor_id(log_gate.worker, 'outbox', log_gate.shard)));
        if array_position(got.held, log_gate.shard) > got.share then
            return 'its share of the shards'; -- store.GateShare
        end if;
    end if;
    return gate;
end
$$;
comment on function tidemark.log_gate(text, integer) is
    'Why the owner of a cursor of the log must give it back: a closed gate (tidemark.closed_gate), at once; or "its '
    'share of the shards": it has more, and another instance waits for what is under way. Null: it need not.';
grant execute on function tidemark.log_gate(text, integer) to tidemark_reader, tidemark_executor;
