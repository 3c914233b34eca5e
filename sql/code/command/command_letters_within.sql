-- A function of its own, as tidemark.command_claims_begin is: it pins the planner's settings.
create or replace function tidemark.command_letters_within(
    topic_id text, partition integer, first_offset bigint, next_offset bigint)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    return (select coalesce(jsonb_agg(r."offset" order by r."offset"), '[]') from tidemark.command_record r
            where r.topic_id = command_letters_within.topic_id and r.partition = command_letters_within.partition
              and r.why = 'dead_letter' and r."offset" >= first_offset and r."offset" < next_offset);
end
$$;
comment on function tidemark.command_letters_within(text, integer, bigint, bigint) is
    'Part of tidemark.command_passes: the offsets of the records of this page that have a dead letter.';
