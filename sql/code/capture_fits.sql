create or replace function tidemark.capture_fits(bytes bigint, bytes_limit bigint, place text)
returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if bytes > coalesce(bytes_limit, 1000000) then
        raise exception using errcode = 'TM002',
            message = format('%sthe columns of its contract hold %s bytes in a row, more than the %s of capture.payload_limit', place, bytes, coalesce(bytes_limit, 1000000)),
            hint = 'Take the large column out of payload_columns: send a reference. Or raise the setting.';
    end if;
    return true;
end
$$;
comment on function tidemark.capture_fits(bigint, bigint, text) is 'True, or raises TM002 where a row holds more bytes than captured payloads may (bytes_limit, default 1000000); place begins the message.';
revoke all on function tidemark.capture_fits(bigint, bigint, text) from public;
