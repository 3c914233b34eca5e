create or replace function tidemark.session_check(who text, why text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception using errcode = 'TM006',
            message = format('%s cannot run in a transaction that is %s', who,
                             current_setting('transaction_isolation')),
            hint = 'Use READ COMMITTED: ' || why;
    end if;
    if pg_is_in_recovery() then
        raise exception using errcode = 'TM007', message = format('%s cannot run on a standby', who),
            hint = 'Connect to the primary.';
    end if;
end
$$;
comment on function tidemark.session_check(text, text) is
    'Raises TM006 where the transaction is not read committed, and TM007 on a standby. who names the caller in the '
    'message, and why the reason.';
grant execute on function tidemark.session_check(text, text) to tidemark_executor;
