create or replace function tidemark.session_statements()
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The time tells a statement from one of the same name and text that was prepared with another search path. It is a
    -- number: a function may have changed the style of dates.
    return array(
        select concat_ws(' ', quote_ident(p.name), extract(epoch from p.prepare_time), p.statement)
        from pg_prepared_statements p);
end
$$;
comment on function tidemark.session_statements() is
    'The prepared statements of the session, for tidemark.session_statements_drop.';
grant execute on function tidemark.session_statements() to tidemark_reader, tidemark_executor;
