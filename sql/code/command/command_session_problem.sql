create or replace function tidemark.command_session_problem(before text[])
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    after text[] := tidemark.command_session();
    name text;
    problem text;
begin
    if after = before then
        return null;
    end if;
    -- A function may leave a cursor to the end of the transaction. Those that its callers read from are among those
    -- before; CLOSE ALL would fail at them. An array, since a loop over the query would read from a cursor, too.
    foreach name in array array(
        select c.name from pg_cursors c
        where not c.is_holdable
          and concat_ws(' ', 'open cursor', quote_ident(c.name), extract(epoch from c.creation_time), c.statement)
              <> all (before))
    loop
        execute format('close %I', name);
    end loop;
    after := tidemark.command_session();
    if after = before then
        return null;
    end if;
    select format('has left or changed a %s of the session',
                  substring(e from 'prepared statement|cursor|temporary object')) into problem
    from (select unnest(after) except select unnest(before)
          union all (select unnest(before) except select unnest(after))) c (e) order by e limit 1;
    -- A statement outlasts the rollback. One that took the place of the session's own is dropped with the others: to
    -- execute it is then an error.
    perform tidemark.session_statements_drop(array(
        select substr(b, length('prepared statement ') + 1) from unnest(before) b
        where starts_with(b, 'prepared statement ')));
    return problem;
end
$$;
comment on function tidemark.command_session_problem(text[]) is
    'What differs in the session from before (tidemark.command_session), as the end of a sentence; null: nothing. '
    'Closes the cursors without hold, and drops the prepared statements, that were not there.';
