create or replace function tidemark.command_session_problem(before text[])
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    after constant text[] := tidemark.command_session();
    name text;
    problem text;
begin
    if after = before then
        return null;
    end if;
    select format('has changed a %s of the session',
                  substring(e from '^(?:prepared statement|cursor|setting [^ ]+)')) into problem
    from (select unnest(after) except select unnest(before)
          union all (select unnest(before) except select unnest(after))) c (e) order by e limit 1;
    -- A statement outlasts the rollback. One that took the place of the session's own is dropped with the others: to
    -- execute it is then an error.
    for name in
        select p.name from pg_prepared_statements p
        where concat_ws(' ', 'prepared statement', quote_ident(p.name), extract(epoch from p.prepare_time),
                        p.statement) <> all (before)
    loop
        execute format('deallocate %I', name);
    end loop;
    return problem;
end
$$;
comment on function tidemark.command_session_problem(text[]) is
    'What differs in the session from before (tidemark.command_session), as the end of a sentence; null: nothing. '
    'Drops the prepared statements that were not there.';
