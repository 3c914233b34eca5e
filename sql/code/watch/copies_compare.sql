-- A mark is noted here before it is left, and looked for here after it was heard. So a mark that came after a daemon of
-- this database had looked, and is not noted here, was left by a daemon whose notes are elsewhere: in another copy, or
-- in a part of this database's past that a failover or a restore has lost. What was lost was noted before the failover,
-- is left within 4 seconds of its note, is heard by a look that began at most 6 seconds after the one before (5, and 1
-- for a busy machine; a later look drops what it hears), and is compared within the 4 seconds that a look takes. So it
-- comes here within 4 + 6 + 4 = 14 seconds of the failover. What comes for longer lives.
create or replace function tidemark.copies_compare(target text, heard text[])
returns table (place text, mark text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    past constant interval := '14 seconds';
    -- A mark of another copy that was heard longer ago is of another encounter.
    lately constant interval := '45 seconds';
    moment constant timestamptz := clock_timestamp();
    first_at timestamptz;
begin
    if not tidemark.armed() then
        return;
    end if;
    delete from tidemark.copy_mark m where m.at < moment - interval '1 hour';
    insert into tidemark.copy_mark as m (mark, target, ours, at)
    select distinct h, copies_compare.target, false, moment
    from unnest(heard) h where length(h) <= 100
    on conflict (mark) do nothing;
    if found then
        select min(m.at) into first_at
        from tidemark.copy_mark m
        where m.target = copies_compare.target and not m.ours and m.at > moment - lately;
        if first_at < moment - past then
            perform tidemark.finding_open('two_copies', copies_compare.target, 'high', format(
                'another copy of this database is live there too: since %s marks come that no daemon of this one left',
                date_trunc('second', first_at)));
        end if;
    end if;
    insert into tidemark.copy_mark (mark, target, ours, at)
    values (gen_random_uuid()::text, copies_compare.target, true, moment)
    returning copy_mark.mark into mark;
    place := format('tidemark-copies-%s-%s', tidemark.system_identifier(),
                    (select d.oid from pg_database d where d.datname = current_database()));
    return next;
end
$$;
comment on function tidemark.copies_compare(text, text[]) is
    'Compares marks that were heard at a broker since the last look with those of this database, and notes the next '
    'mark: a daemon leaves it there within 4 seconds. place: where copies of this database leave theirs. No row where '
    'this database is not armed. Opens the finding two_copies of target, once marks of another copy have come for 14 '
    'seconds.';
grant execute on function tidemark.copies_compare(text, text[]) to tidemark_executor;
