create or replace function tidemark.capture_fits(bytes bigint, place text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    payload_limit bigint;
begin
    -- Check the columns before they become JSON, so that an oversized row costs no memory. tidemark.event_check checks
    -- the whole payload.
    if bytes > 1000 then
        payload_limit := tidemark.payload_limit();
        if bytes > payload_limit then
            raise exception using errcode = 'TM005',
                message = format('%sthe columns of its contract have %s bytes, and the payload must have at most %s',
                                 place, bytes, payload_limit),
                hint = 'Take the large column out of payload_columns: send a reference. Or raise the setting '
                    'emit.payload_limit.';
        end if;
    end if;
    return true;
end
$$;
comment on function tidemark.capture_fits(bigint, text) is
    'Returns true, or raises TM005 where a row has more bytes in the columns of a contract than the setting '
    'emit.payload_limit allows. place begins the message.';
