create or replace function tidemark.interval_setting(key text, fallback interval)
returns interval
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The clock minus this is a time that PostgreSQL knows, and not one to come.
    return coalesce((select least(s.value::interval, interval '100 years') from tidemark.setting s
                     where s.key = interval_setting.key and s.value::interval >= interval '0'), fallback);
exception when data_exception then
    return fallback;
end
$$;
comment on function tidemark.interval_setting(text, interval) is
    'The setting as an interval, at most 100 years; fallback where it is missing, negative or cannot be read as one.';
grant execute on function tidemark.interval_setting(text, interval) to tidemark_reader, tidemark_executor;
