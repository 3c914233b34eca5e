-- A function of its own, as tidemark.event_snapshots is: it pins the planner's settings.
create or replace function tidemark.event_letters(
    domain text, subject text, key text, before timestamptz, erasing int8multirange, rest boolean)
returns table (id bigint, waits boolean)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
#variable_conflict use_column
declare
    first_seq constant bigint := case when rest then 0 else lower(erasing) end;
    last_seq constant bigint := case when rest then 9223372036854775807 else upper(erasing) end;
begin
    return query
    select l.id, exists (select from tidemark.pending p where p.dead_letter_id = l.id)
    from tidemark.dead_letter l
    -- whole is null: the letter outlived its event. A number is used again after a failover.
    left join lateral (
        select o.payload - 'erased' <> '{}' or not o.payload ? 'erased' as whole from tidemark.outbox o
        where o.seq = l.seq and o.event_id = l.event_id limit 1) o on true
    cross join lateral (
        select rest and (event_letters.subject is null or l.event_snapshot ->> 'subject_ref' = event_letters.subject)
                    and (event_letters.key is null or l.event_snapshot ->> 'key' = event_letters.key)
                    and (event_letters.before is null
                         or (l.event_snapshot ->> 'created_at')::timestamptz < event_letters.before) as fits) f
    where l.source = 'outbox' and l.error_detail is distinct from 'erased'
      and l.event_snapshot ->> 'domain' = event_letters.domain and l.seq between first_seq and last_seq
      and (f.fits or l.seq <@ erasing)
      and case when o.whole then l.seq <@ erasing else f.fits end
    order by l.id for update of l;
end
$$;
comment on function tidemark.event_letters(text, text, text, timestamptz, int8multirange, boolean) is
    'Part of tidemark.events_erase: locks the dead letters of the events erasing. rest: also those that fit the '
    'request by their snapshot, and whose event is erased already or is no longer in the log. waits: a replay of the '
    'letter is pending, which needs its payload.';
