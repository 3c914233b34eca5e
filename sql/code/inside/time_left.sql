create or replace function tidemark.time_left()
returns interval
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    whole constant interval := current_setting('statement_timeout')::interval;
begin
    -- The timer runs from the statement that the client sent; that a function sets another one changes nothing. Its
    -- last tenth is spent: PostgreSQL's clock for it begins a little earlier than statement_timestamp().
    return case when whole > interval '0' then whole * 0.9 - (clock_timestamp() - statement_timestamp()) end;
end
$$;
comment on function tidemark.time_left() is
    'How long the statement that the client sent may still run, less a tenth of its statement_timeout. Zero or below: '
    'the timer has fired or is about to, and does not fire a second time. Null: there is no statement_timeout.';
grant execute on function tidemark.time_left() to tidemark_executor;
