-- n_live_tup is the count that rolled back work, savepoints included, does not change. Two things do change it, and
-- keep a comparison from being certain. VACUUM and ANALYZE set it to an estimate. And a session may count what it
-- committed late: so each event of this round may be missing in noted, and each of base's round may have been missing
-- in base. A gap is what remains beyond both. The server also keeps the count from falling below zero.
create or replace function tidemark.capture_without(
    watch tidemark.capture_count,
    whole boolean,
    out uncounted text,
    out problem text,
    out inserts bigint,
    out deletes bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    base constant tidemark.capture_reading := watch.base;
    noted constant tidemark.capture_reading := watch.noted;
    inserted constant bigint := watch.inserts + watch.round_inserts;
    deleted constant bigint := watch.deletes + watch.round_deletes;
    now_ record;
    grown bigint;
begin
    inserts := 0;
    deletes := 0;
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
    problem := case
        when uncounted is not null then uncounted
        when base is null then 'nothing to compare with yet'
        when noted.tree <> base.tree then 'the table was truncated or rewritten, or has other partitions'
        when noted.resets is distinct from base.resets or noted.inserted < base.inserted
            then 'the server''s statistics were reset meanwhile'
        when noted.rewritten <> base.rewritten then 'the table was vacuumed or analyzed meanwhile' end;
    if problem is not null then
        return;
    end if;
    grown := (select sum(n) from unnest(noted.live) n) - (select sum(n) from unnest(base.live) n)
             - inserted + deleted;
    if 'insert' = any (noted.operations) and not exists (
        select from unnest(base.live, base.deleted, noted.deleted) p (live, before, after)
        where p.live < p.after - p.before) then
        inserts := greatest(least(grown - watch.round_deletes, noted.inserted - base.inserted - inserted)
                            - watch.base_inserts, 0);
    end if;
    if 'delete' = any (noted.operations) then
        deletes := greatest(least(-grown - watch.round_inserts,
            (select sum(n) from unnest(noted.deleted) n) - (select sum(n) from unnest(base.deleted) n) - deleted)
                            - watch.base_deletes, 0);
    end if;
end
$$;
comment on function tidemark.capture_without(tidemark.capture_count, boolean) is
    'How many inserts and deletes of a captured table the server has counted beyond all events that there can be: base '
    'compared with noted. whole: the log has had all events of the round. problem: why they cannot be compared; '
    'uncounted: why noted cannot be compared later either.';
