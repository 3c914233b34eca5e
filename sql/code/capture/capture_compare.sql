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
    without_ record;
    gap tidemark.capture_gap;
begin
    without_ := tidemark.capture_without(watch, whole);
    watch.status := case when without_.inserts > 0 or without_.deletes > 0 then 'gap'
                         when without_.problem is null then 'even' when base is null then 'first' else 'unclear' end;
    watch.detail := coalesce(without_.problem, format('%s inserts and %s deletes have events since %s', inserts,
                                                      deletes, date_trunc('second', base.since)));
    if watch.status = 'gap' then
        gap.relation := watch.relation;
        gap.name := watch.name;
        gap.since := base.since;
        gap.snapshot := base.snapshot;
        gap.counted := without_.inserts;
        gap.others := without_.deletes;
        gap.detail := format('by the server''s counts, at least %s inserts and %s deletes since %s have no event; %s '
                             'and %s have one', gap.counted, gap.others, date_trunc('second', base.since), inserts,
                             deletes);
        watch.detail := gap.detail;
        perform tidemark.capture_gap_open(gap);
    end if;
    -- What was found, and what cannot be compared, is behind the next base. A calmer round is also a better base.
    if watch.status <> 'even' or watch.round_inserts + watch.round_deletes = 0
       or watch.round_inserts + watch.round_deletes < watch.base_inserts + watch.base_deletes then
        watch.base := case when without_.uncounted is null then noted end;
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
