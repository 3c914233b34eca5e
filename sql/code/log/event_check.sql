create or replace function tidemark.event_check(
    place text,
    payload jsonb,
    key text,
    stream text,
    subject_table text,
    subject_ref text,
    trace text,
    actor text,
    occurred_at timestamptz)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    payload_bytes constant bigint := octet_length(payload::text);
    payload_limit bigint;
    name text;
    value text;
begin
    -- A day inside the years 1 to 9999, the range that JSON and RFC 3339 can write, in any time zone.
    if occurred_at < timestamptz '0001-01-02 00:00:00+00' or occurred_at >= timestamptz '9999-12-31 00:00:00+00' then
        raise exception using errcode = 'TM005',
            message = format('%soccurred_at is %s, and must be a time in the years 1 to 9999', place, occurred_at),
            hint = 'Leave it out if you do not know it: it is then the time of the emit.';
    end if;

    if greatest(octet_length(key), octet_length(stream), octet_length(subject_table), octet_length(subject_ref),
                octet_length(trace), octet_length(actor)) > 1024 then
        select m.name, m.value into name, value
        from (values ('key', key), ('stream', stream), ('subject_table', subject_table), ('subject_ref', subject_ref),
                     ('trace', trace), ('actor', actor)) m (name, value)
        where octet_length(m.value) > 1024 limit 1;
        raise exception using errcode = 'TM005',
            message = format('%s%s has %s bytes, and must have at most 1024', place, name, octet_length(value)),
            hint = 'Use a digest of it, or put it into the payload.';
    end if;

    -- Check the size of the text, not the stored size: 1e100000 takes a few bytes, and compressed text may take a
    -- 270th.
    if payload_bytes > 1000 then
        payload_limit := tidemark.payload_limit();
        if payload_bytes > payload_limit then
            raise exception using errcode = 'TM005',
                message = format('%spayload has %s bytes, and must have at most %s', place, payload_bytes,
                                 payload_limit),
                hint = 'Send a reference to what is large, or raise the setting emit.payload_limit.';
        end if;
        -- A payload that almost exhausts the stack of this session can be stored, but a pass, which uses more of its
        -- stack, could not read it.
        if jsonb_path_exists(payload, 'strict $.**{500} ? (@.type() == "object" || @.type() == "array")') then
            raise exception using errcode = 'TM005',
                message = format('%spayload nests deeper than 500 levels', place),
                hint = 'Flatten it, or send it as text.';
        end if;
    end if;
    return true;
end
$$;
comment on function tidemark.event_check(text, jsonb, text, text, text, text, text, text, timestamptz) is
    'Returns true or raises TM005: for an occurred_at that is infinite or outside the years 1 to 9999, a text member '
    'over 1024 bytes, or a payload whose JSON text exceeds the setting emit.payload_limit or that nests deeper than '
    '500 levels. place begins the message. emit, emit_many and capture share this rule.';
