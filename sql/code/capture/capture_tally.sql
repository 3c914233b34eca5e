create or replace function tidemark.capture_tally(after_seq bigint, upto_seq bigint)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    update tidemark.capture_count c
    set round_inserts = c.round_inserts + n.inserts, round_deletes = c.round_deletes + n.deletes
    from tidemark.capture_events(after_seq, capture_tally.upto_seq) n
    where n.name = c.name;
end
$$;
comment on function tidemark.capture_tally(bigint, bigint) is
    'Part of tidemark.capture_recount: adds up tidemark.capture_events of a part of the log.';
