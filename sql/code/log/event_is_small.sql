-- Inlined into emit's statement: for almost every event this is the whole cost of emit's limits. Every limit is above
-- 1000.
create or replace function tidemark.event_is_small(
    payload jsonb,
    key text,
    stream text,
    subject_table text,
    subject_ref text,
    trace text,
    actor text,
    occurred_at timestamptz)
returns boolean
language sql stable parallel safe
as $$
    -- The size of an array is a sum, in one call. It counts the payload's text: 1e100000 is stored in a few bytes.
    -- event_check makes the text of a large payload, once.
    select pg_catalog.pg_column_size(payload) > 1000 is not true
       and pg_catalog.pg_column_size(array[payload::text, key, stream, subject_table, subject_ref, trace,
                                           actor]) <= 1000
       and (occurred_at is null
            or occurred_at >= timestamptz '0001-01-02 00:00:00+00'
            and occurred_at < timestamptz '9999-12-31 00:00:00+00')
$$;
comment on function tidemark.event_is_small(jsonb, text, text, text, text, text, text, timestamptz) is
    'True where the event is small enough that tidemark.event_check need not be called.';
