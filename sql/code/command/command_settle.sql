-- A trigger of a deferred constraint would run at the commit, with the rights of the session (before PostgreSQL 18).
-- The command's function sets all constraints immediate, which runs what waits; but a trigger that then runs can defer
-- its constraint and write again. So this is repeated until a turn has written nothing: it has left nothing to run.
-- Each statement that writes takes a number, which no rollback gives back: two marks with adjacent numbers have nothing
-- between them.
create or replace function tidemark.command_settle(made text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    most constant integer := 10;
    place tid;
    places tid[];
    before bigint;
    after bigint;
begin
    for turn in 1..most loop
        insert into tidemark.command_mark default values returning ctid, cmin::text::bigint into place, before;
        places := places || place;
        execute format('select tidemark.%I(null, null)', made);
        -- Before anything else: names would be looked up in a path that a trigger has set.
        perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
        insert into tidemark.command_mark default values returning ctid, cmin::text::bigint into place, after;
        places := places || place;
        if after = before + 1 then
            perform tidemark.command_marks_delete(places);
            return;
        end if;
    end loop;
    raise exception using errcode = 'insufficient_privilege',
        message = format('a constraint trigger has deferred itself again, %s times', most),
        hint = 'A trigger that runs when a command ends does not defer its constraint again.';
end
$$;
comment on function tidemark.command_settle(text) is
    'Runs the triggers of deferred constraints that a command has left, with the rights of its service, until none is '
    'left. Raises 42501 where there is no end of it.';
