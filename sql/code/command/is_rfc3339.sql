create or replace function tidemark.is_rfc3339(value text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return value ~ (E'^\\d{4}-\\d\\d-\\d\\d[Tt]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d([.]\\d+)?'
                    '([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)$')
        and value::timestamptz is not null;
exception when data_exception then
    return false;
end
$$;
comment on function tidemark.is_rfc3339(text) is 'True where the text is a time as RFC 3339 writes it.';
grant execute on function tidemark.is_rfc3339(text) to tidemark_reader, tidemark_executor;
