create or replace function tidemark.cause_seen()
returns table (
    status text,
    cause text,
    subject text,
    since timestamptz,
    found text,
    waiting bigint,
    symptoms text[],
    means text,
    todo text,
    sql text[],
    cli text[],
    finding bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '500ms'
as $$
#variable_conflict use_column
begin
    return query select l.* from tidemark.cause_list() l;
exception when lock_not_available then
    return query
    select t.status, t.cause, t.subject, date_trunc('second', t.since),
           t.found || '; what else is wrong cannot be seen meanwhile', null::bigint, '{}'::text[], k.means, k.todo,
           t.sql, t.cli, null::bigint
    from (select * from tidemark.cause_locks()
          union all
          select 'tables_locked', 'tidemark', 'unknown', null, 'a table of Tidemark is locked', null, '{}', '{}', '{}'
          where not exists (select from tidemark.cause_locks())) t
    join tidemark.cause_kind k on k.cause = t.cause
    order by t.status, t.since;
end
$$;
comment on function tidemark.cause_seen() is
    'The rows of tidemark.cause: those of tidemark.cause_list, or where its tables are locked, who has locked them.';
grant execute on function tidemark.cause_seen() to tidemark_reader, tidemark_executor;
