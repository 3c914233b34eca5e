create or replace function tidemark.emit_keys_expire()
returns table (action text, object text, detail text, more boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    most constant integer := 10000;
    retention constant interval := tidemark.interval_setting('emit_key.retention', '30 days');
    -- A constant: an index cannot use a condition that calls clock_timestamp(), and each call would read all rows.
    until constant timestamptz := clock_timestamp() - retention;
    n bigint;
begin
    delete from tidemark.emit_key k
    where k.ctid = any (array(
        select e.ctid from tidemark.emit_key e
        where e.created_at < until order by e.created_at limit most for update skip locked));
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'emit_key',
            format('%s idempotency keys older than %s%s', n, retention,
                   case when n = most then ', more are left for another call' else '' end),
            n = most;
    end if;
end
$$;
comment on function tidemark.emit_keys_expire() is
    'The part of tidemark.maintain that deletes idempotency keys past the setting emit_key.retention, at most 10,000 a '
    'call. more: another call would delete more.';
grant execute on function tidemark.emit_keys_expire() to tidemark_admin, tidemark_executor;
