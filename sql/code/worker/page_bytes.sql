-- In PL/pgSQL, which keeps the plan: every pass calls it.
create or replace function tidemark.page_bytes()
returns bigint
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return greatest(65536, coalesce((
        select s.value::bigint from tidemark.setting s
        where s.key = 'batch.max_bytes' and s.value ~ '^[0-9]{1,12}$'), 16777216));
end
$$;
comment on function tidemark.page_bytes() is
    'The setting batch.max_bytes: 16777216 where it is missing or unreadable, at least 65536.';
grant execute on function tidemark.page_bytes() to tidemark_executor;
