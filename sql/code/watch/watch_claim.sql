create or replace function tidemark.watch_claim(watcher text)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    turn constant interval := '20 seconds';
begin
    -- The lock lasts until the end of the transaction: no other session watches meanwhile, and none waits.
    perform from tidemark.watcher w
    where w.until is null or w.name = watch_claim.watcher
       -- One that ends later than any can was written before the clock was set back.
       or w.until not between clock_timestamp() and clock_timestamp() + turn
    for update skip locked;
    if not found then
        return false;
    end if;
    update tidemark.watcher w
    set name = coalesce(watch_claim.watcher, format('session %s of %s', pg_backend_pid(), tidemark.login())),
        until = case when watch_claim.watcher is not null then clock_timestamp() + turn end;
    begin
        perform from tidemark.findings_over();
        perform tidemark.log_read_note();
    exception when lock_not_available then
        null; -- the view cause says so
    end;
    return true;
end
$$;
comment on function tidemark.watch_claim(text) is
    'Part of tidemark.watch: true if this session is the one that watches. A daemon stays it for 20 seconds, a session '
    '(watcher null) until its transaction ends. Closes what is over, and notes which cursors have read all of the log.';
grant execute on function tidemark.watch_claim(text) to tidemark_admin, tidemark_executor;
