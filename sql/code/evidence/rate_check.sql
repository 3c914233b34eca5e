create or replace function tidemark.rate_check(rate double precision, what text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if rate < 0.001 or rate > 1000000 then
        raise exception using errcode = 'TM005',
            message = format('rate is %s %s per second, and must be from 0.001 to 1000000', rate, what);
    end if;
end
$$;
comment on function tidemark.rate_check(double precision, text) is
    'Refuses a rate that is out of bounds, of a job that does so many of what in a second. Null: no bound of its own. '
    'Raises TM005.';
