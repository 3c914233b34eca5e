create or replace function tidemark.capture_fits(bytes bigint, place text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    payload_limit bigint;
begin
    -- Before they are made JSON: what is far too large costs no memory. tidemark.event_check looks at the whole
    -- payload.
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
    'True, or raises TM005 where the columns of a contract hold more bytes in a row than the setting '
    'emit.payload_limit allows; place begins the message.';
