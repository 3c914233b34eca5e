create or replace function tidemark.capture_backfill_known(id bigint, refs text[])
returns text[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    b tidemark.capture_backfill;
    upto_seq constant bigint := tidemark.captured_upto();
    last_number bigint;
    of_writers text[];
begin
    select f.* into b from tidemark.capture_backfill f where f.id = capture_backfill_known.id for update;
    if tidemark.fence_closed(b.fence) then
        -- All numbers up to known_next are visible now, or never will be. The next step begins behind them.
        insert into tidemark.capture_backfill_key (backfill_id, ref)
        select distinct b.id, o.subject_ref from tidemark.outbox o
        where o.seq > b.known_to and o.seq <= b.known_next and o.subject_table = b.name and o.subject_ref is not null
          and (o.inbound_id is not null or o.seq <= upto_seq)
        on conflict do nothing;
        -- First the number, then its owners.
        last_number := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
        of_writers := tidemark.fence_now();
        update tidemark.capture_backfill f set known_to = b.known_next, known_next = last_number, fence = of_writers
        where f.id = b.id;
        b.known_to := b.known_next;
    end if;
    return array(
        select r from unnest(refs) r
        where exists (select from tidemark.capture_backfill_key k where k.backfill_id = b.id and k.ref = r)
        union
        select o.subject_ref from tidemark.outbox o
        where o.seq > b.known_to and o.subject_table = b.name and o.subject_ref = any (refs) and cardinality(refs) > 0
          and (o.inbound_id is not null or o.seq <= upto_seq));
end
$$;
comment on function tidemark.capture_backfill_known(bigint, text[]) is
    'Part of tidemark.capture_backfill_step: which of these rows have an event of their own since the backfill began.';
grant execute on function tidemark.capture_backfill_known(bigint, text[]) to tidemark_admin;
