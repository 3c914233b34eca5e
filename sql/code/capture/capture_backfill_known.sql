create or replace function tidemark.capture_backfill_known(id bigint, rows_ jsonb)
returns bigint[]
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
    of_several boolean;
    refs text[];
begin
    select f.* into b from tidemark.capture_backfill f where f.id = capture_backfill_known.id for update;
    -- Keys of several columns may have the same text. An event without the key as JSON (its payload was erased, or the
    -- application emitted it) has only the text, and so have rows of tidemark.capture_backfill_key from before.
    of_several := cardinality(b.key_columns) > 1;
    if tidemark.fence_closed(b.fence) then
        -- All numbers up to known_next are visible now, or never will be. The next step begins behind them.
        insert into tidemark.capture_backfill_key (backfill_id, ref, key_hash)
        select distinct b.id, o.subject_ref, coalesce(case when of_several then
            sha256(convert_to(o.payload ->> 'primary_key', 'UTF8')) end, '')
        from tidemark.outbox o
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
    refs := array(select r ->> 'ref' from jsonb_array_elements(rows_) r);
    return array(
        with event as materialized (
            select distinct o.subject_ref as ref, coalesce(case when of_several then
                sha256(convert_to(o.payload ->> 'primary_key', 'UTF8')) end, '') as key_hash
            from tidemark.outbox o
            where o.seq > b.known_to and o.subject_table = b.name and o.subject_ref = any (refs)
              and cardinality(refs) > 0 and (o.inbound_id is not null or o.seq <= upto_seq)
        ), asked as materialized (
            select (r -> 'n')::bigint as n, r ->> 'ref' as ref,
                   case when of_several then sha256(convert_to(r ->> 'primary_key', 'UTF8')) else '' end as key_hash
            from jsonb_array_elements(rows_) r
        )
        select a.n from asked a
        where exists (select from tidemark.capture_backfill_key k
                      where k.backfill_id = b.id and k.ref = a.ref and k.key_hash in ('', a.key_hash))
           or (a.ref, a.key_hash) in (select e.ref, e.key_hash from event e)
           or of_several and a.ref in (select e.ref from event e where e.key_hash = ''));
end
$$;
comment on function tidemark.capture_backfill_known(bigint, jsonb) is
    'Part of tidemark.capture_backfill_step: the numbers (n) of those of these rows ({"n", "ref", "primary_key"}) that '
    'have an event of their own since the backfill began.';
grant execute on function tidemark.capture_backfill_known(bigint, jsonb) to tidemark_admin;
