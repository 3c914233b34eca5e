create or replace function tidemark.capture_gaps_note(name text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    r record;
    gap tidemark.capture_gap;
begin
    -- What tidemark.capture_recount would find with its next round. It has the same lock, so that no change is counted
    -- twice; its comparison begins anew.
    perform from tidemark.capture_round for update skip locked;
    if found then
        for r in select m.* from tidemark.capture_missed() m loop
            gap.relation := r.relation;
            gap.name := r.name;
            gap.since := r.since;
            gap.snapshot := r.snapshot;
            gap.counted := r.inserts;
            gap.others := r.deletes;
            gap.detail := format('by the server''s counts, at least %s inserts and %s deletes since %s have no event',
                                 r.inserts, r.deletes, date_trunc('second', r.since));
            perform tidemark.capture_gap_open(gap);
            delete from tidemark.capture_count c where c.name = r.name;
        end loop;
    end if;

    -- Find triggers that do not fire now, and may fire again before the next reconcile. This reads a few rows of the
    -- catalogs.
    for r in
        select d.relation, d.name, d.operations from tidemark.capture_deaf d
        where not exists (select from tidemark.capture_gap g where g.name = d.name and g.resolved_at is null)
          -- A trigger that was never attached has missed nothing.
          and (capture_gaps_note.name is null or d.name = capture_gaps_note.name and (
                   d.triggers is not null or exists (
                       select from tidemark.capture_count c
                       where c.name = d.name and (c.noted).operations && string_to_array(d.operations, ', '))))
    loop
        gap.relation := r.relation;
        gap.name := r.name;
        -- When the table was compared last: its rows since then are emitted, unless they have events.
        select k.since, k.snapshot into gap.since, gap.snapshot
        from (select c.at as since, c.snapshot, true as whole from tidemark.capture_checkpoint c where c.name = r.name
              union all
              select (c.base).since, (c.base).snapshot, true from tidemark.capture_count c
              where c.name = r.name and c.base is not null
              union all
              select (c.noted).since, (c.noted).snapshot, false from tidemark.capture_count c
              where c.name = r.name
              union all
              select clock_timestamp(), tidemark.capture_snapshot(), null) k
        order by k.whole desc nulls last, k.since desc limit 1;
        gap.counted := 0;
        gap.others := 0;
        gap.detail := format('its trigger for %s is missing, altered or disabled', r.operations);
        perform tidemark.capture_gap_open(gap);
    end loop;
end
$$;
comment on function tidemark.capture_gaps_note(text) is
    'Opens the finding capture_gap, with its gap, for those of tidemark.capture_missed, and for each table with an '
    'enabled route whose trigger does not fire. name: of such tables for this one alone, and only if the trigger is '
    'disabled, or was there before; tidemark.capture_attach asks so, before it lets the trigger fire. Null: for all.';
grant execute on function tidemark.capture_gaps_note(text) to tidemark_admin;
