create or replace function tidemark.source_check(definition tidemark.source)
returns table ("check" text, status text, detail text, hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return;
end
$$;
comment on function tidemark.source_check(tidemark.source) is 'The doctor.';
revoke all on function tidemark.source_check(tidemark.source) from public;
grant execute on function tidemark.source_check(tidemark.source) to tidemark_reader, tidemark_executor;
