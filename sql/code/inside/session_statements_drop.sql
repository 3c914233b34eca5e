create or replace function tidemark.session_statements_drop(known text[])
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    name text;
begin
    for name in
        select p.name from pg_prepared_statements p
        where concat_ws(' ', quote_ident(p.name), extract(epoch from p.prepare_time), p.statement) <> all (known)
    loop
        execute format('deallocate %I', name);
    end loop;
    return found;
end
$$;
comment on function tidemark.session_statements_drop(text[]) is
    'Drops the prepared statements of the session that are not among those known: they outlast a rollback. Returns '
    'whether there were any.';
grant execute on function tidemark.session_statements_drop(text[]) to tidemark_reader, tidemark_executor;
