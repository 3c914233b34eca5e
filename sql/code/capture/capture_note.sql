create or replace function tidemark.capture_note(name text, round tidemark.capture_round)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    watched record;
    other tidemark.capture_count;
    gap tidemark.capture_gap;
begin
    select w.* into watched from tidemark.capture_watched w where w.name = capture_note.name;
    if not found then
        return;
    end if;
    delete from tidemark.capture_count c where c.name = watched.name and c.relation <> watched.relation
    returning c.* into other;
    if found then
        gap.relation := watched.relation;
        gap.name := watched.name;
        gap.since := (other.noted).since;
        gap.snapshot := (other.noted).snapshot;
        gap.detail := format('it is another table than the one that was captured until %s',
                             date_trunc('second', round.noted_at));
        perform tidemark.capture_gap_open(gap);
    end if;
    insert into tidemark.capture_count as c (name, relation, noted)
    values (watched.name, watched.relation,
            tidemark.capture_read(watched.relation, watched.operations, watched.routes, round))
    on conflict (name) do update set noted = excluded.noted;
end
$$;
comment on function tidemark.capture_note(text, tidemark.capture_round) is
    'Part of tidemark.capture_recount: notes what the server has counted of a table. Opens its gap if another table '
    'has taken the name.';
