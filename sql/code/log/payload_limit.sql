create or replace function tidemark.payload_limit()
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    value constant text := (select s.value from tidemark.setting s where s.key = 'emit.payload_limit');
begin
    -- An unreadable setting must neither fail every emit nor remove the limit.
    return case when value ~ '^[0-9]{1,15}$'
                     then nullif(greatest(value::bigint, case when value::bigint > 0 then 1000 else 0 end), 0)
                else 1000000 end;
end
$$;
comment on function tidemark.payload_limit() is
    'The maximum size of a payload''s JSON text in bytes: the setting emit.payload_limit, at least 1000; 1000000 where '
    'the setting is missing or unreadable. Null: no limit (0).';
grant execute on function tidemark.payload_limit() to tidemark_executor;
