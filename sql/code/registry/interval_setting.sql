create or replace function tidemark.interval_setting(key text, fallback interval)
returns interval
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce((select s.value::interval from tidemark.setting s where s.key = interval_setting.key), fallback);
exception when data_exception then
    return fallback;
end
$$;
comment on function tidemark.interval_setting(text, interval) is
    'The setting as an interval; fallback where it is missing or cannot be read as one.';
grant execute on function tidemark.interval_setting(text, interval) to tidemark_reader, tidemark_executor;
