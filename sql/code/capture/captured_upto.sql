create or replace function tidemark.captured_upto()
returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce((select m.upto_seq from tidemark.capture_mark m), 9223372036854775807)
$$;
comment on function tidemark.captured_upto() is
    'A captured event has an inbound_id, or a number up to this one: captures of earlier releases wrote none, so that '
    'only subject_table and payload tell their events from those of emitters.';
grant execute on function tidemark.captured_upto() to tidemark_reader, tidemark_admin, tidemark_executor;
