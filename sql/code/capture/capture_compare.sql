-- n_live_tup is the count that rolled back work, savepoints included, does not change. Two things do change it, and
-- keep a comparison from being certain. VACUUM and ANALYZE set it to an estimate. And a session may count what it
-- committed late: so each event of this round may be missing in noted, and each of base's round may have been missing
-- in base. A gap is what remains beyond both. The server also keeps the count from falling below zero.
create or replace function tidemark.capture_compare(watch tidemark.capture_count, whole boolean)
returns tidemark.capture_count
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    base constant tidemark.capture_reading := watch.base;
    noted constant tidemark.capture_reading := watch.noted;
    inserts bigint := watch.inserts + watch.round_inserts;
    deletes bigint := watch.deletes + watch.round_deletes;
    now_ record;
    uncounted text;
    grown bigint;
    without_insert bigint := 0;
    without_delete bigint := 0;
    gap tidemark.capture_gap;
begin
    select w.* into now_ from tidemark.capture_watched w where w.name = watch.name and w.relation = watch.relation;
    uncounted := case
        when now_.routes is distinct from noted.routes or noted.routes <> base.routes
            then 'its routes were changed meanwhile'
        when not whole then 'a part of the log is gone'
        -- tidemark.maintain sums these up by hour.
        when exists (select from tidemark.captured c
                     where c.route_id = any (now_.route_ids)
                       and c.at >= date_trunc('hour', coalesce(base.since, noted.since)))
            then 'changes that became no event are on record in tidemark.captured' end;
    watch.detail := case
        when uncounted is not null then uncounted
        when base is null then 'nothing to compare with yet'
        when noted.tree <> base.tree then 'the table was truncated or rewritten, or has other partitions'
        when noted.resets is distinct from base.resets or noted.inserted < base.inserted
            then 'the server''s statistics were reset meanwhile'
        when noted.rewritten <> base.rewritten then 'the table was vacuumed or analyzed meanwhile' end;
    if watch.detail is null then
        grown := (select sum(n) from unnest(noted.live) n) - (select sum(n) from unnest(base.live) n)
                 - inserts + deletes;
        if 'insert' = any (noted.operations) and not exists (
            select from unnest(base.live, base.deleted, noted.deleted) p (live, before, after)
            where p.live < p.after - p.before) then
            without_insert := least(grown - watch.round_deletes, noted.inserted - base.inserted - inserts)
                              - watch.base_inserts;
        end if;
        if 'delete' = any (noted.operations) then
            without_delete := least(-grown - watch.round_inserts,
                (select sum(n) from unnest(noted.deleted) n) - (select sum(n) from unnest(base.deleted) n) - deletes)
                              - watch.base_deletes;
        end if;
        watch.status := case when without_insert > 0 or without_delete > 0 then 'gap' else 'even' end;
        watch.detail := format('%s inserts and %s deletes have events since %s', inserts, deletes,
                               date_trunc('second', base.since));
    else
        watch.status := case when base is null then 'first' else 'unclear' end;
    end if;
    if watch.status = 'gap' then
        gap.relation := watch.relation;
        gap.name := watch.name;
        gap.since := base.since;
        gap.snapshot := base.snapshot;
        gap.counted := greatest(without_insert, 0);
        gap.others := greatest(without_delete, 0);
        gap.detail := format('by the server''s counts, at least %s inserts and %s deletes since %s have no event; %s '
                             'and %s have one', gap.counted, gap.others, date_trunc('second', base.since), inserts,
                             deletes);
        watch.detail := gap.detail;
        perform tidemark.capture_gap_open(gap);
    end if;
    -- What was found, and what cannot be compared, is behind the next base. A calmer round is also a better base.
    if watch.status <> 'even' or watch.round_inserts + watch.round_deletes = 0
       or watch.round_inserts + watch.round_deletes < watch.base_inserts + watch.base_deletes then
        watch.base := case when uncounted is null then noted end;
        watch.base_inserts := watch.round_inserts;
        watch.base_deletes := watch.round_deletes;
        inserts := 0;
        deletes := 0;
    end if;
    watch.inserts := inserts;
    watch.deletes := deletes;
    watch.round_inserts := 0;
    watch.round_deletes := 0;
    watch.compared_at := clock_timestamp();
    return watch;
end
$$;
comment on function tidemark.capture_compare(tidemark.capture_count, boolean) is
    'Part of tidemark.capture_recount: compares a table''s counts with its events, and opens its gap if the server '
    'counts more changes than there can be events. whole: the log has had all events of the round.';
