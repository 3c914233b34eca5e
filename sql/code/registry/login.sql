-- Not session_user: in maintenance (ANALYZE, VACUUM, CREATE INDEX, REINDEX, REFRESH MATERIALIZED VIEW, autovacuum, the
-- apply worker of a subscription) PostgreSQL runs functions of a table's owner in the session of another role, often a
-- superuser's. It sets no mark that a function can read, but refuses some statements there, UNLISTEN and DEALLOCATE
-- among them. Both change nothing elsewhere. UNLISTEN stays with the transaction of a session that has ever listened,
-- and PREPARE TRANSACTION would fail: it serves where no transaction can be prepared. DEALLOCATE finds no statement of
-- this name, which takes a subtransaction.
create or replace function tidemark.login(quick boolean default false)
returns name
language plpgsql volatile
as $$
begin
    if quick and pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0' then
        unlisten tidemark_login;
        return session_user;
    end if;
    begin
        deallocate tidemark_login;
    exception
        when invalid_sql_statement_name then
            null;
        when insufficient_privilege then
            raise exception using errcode = 'TM015',
                message = 'a maintenance command cannot emit, nor use Tidemark in another way that is recorded',
                hint = 'The function runs as the table''s owner in the session of another role. Call it from a '
                    'statement or a trigger of the application, not from an index, a statistic, a materialized view or '
                    'a subscription without run_as_owner.';
    end;
    return session_user;
end
$$;
comment on function tidemark.login(boolean) is
    'The role that logged in, as Tidemark records it and decides by it: session_user, which no other function here '
    'may read. Raises TM015 where PostgreSQL runs a table owner''s code in the session of another role '
    '(security-restricted operation). quick costs a fifth; it raises PostgreSQL''s own error, 42501, where the server '
    'has no prepared transactions.';
grant execute on function tidemark.login(boolean) to tidemark_executor;
