create or replace function tidemark.event_snapshots(seqs int8multirange, payloads boolean)
returns table (seq bigint, event_id uuid, snapshot jsonb)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
#variable_conflict use_column
begin
    if payloads then
        return query
        select o.seq, o.event_id, tidemark.event_json(o) from tidemark.events(tidemark.multirange_numbers(seqs)) o;
    else
        -- Select column by column: a whole row would fetch its out-of-line values.
        return query
        select e.seq, e.event_id, to_jsonb(e)
        from unnest(tidemark.multirange_numbers(seqs)) n
        cross join lateral (
            select o.seq, o.event_id, o.created_at, o.occurred_at, o.lane, o.severity, o.domain, o.type, o.stream,
                   o.key, o.subject_table, o.subject_ref, o.idempotency_key, o.trace, o.actor, o.emitted_by,
                   o.inbound_id
            from tidemark.outbox o where o.seq = n limit 1) e;
    end if;
end
$$;
comment on function tidemark.event_snapshots(int8multirange, boolean) is
    'The snapshots of these events that dead letters keep: each event as tidemark.event_json shows it. Without '
    'payloads: all columns except the payload, which is not read.';
