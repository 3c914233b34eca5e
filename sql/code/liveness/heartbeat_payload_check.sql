create or replace function tidemark.heartbeat_payload_check(executor_id text, payload jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text;
begin
    if jsonb_typeof(payload) is distinct from 'object' then
        raise exception using errcode = 'TM002',
            message = format('executor %s: payload is %s, not an object', executor_id,
                             coalesce(jsonb_typeof(payload), 'null')),
            hint = 'Give a JSON object of small facts, e.g. {"batch": 7}.';
    end if;
    problem := tidemark.forbidden_key_in(payload);
    if problem is not null then
        raise exception using errcode = 'TM003',
            message = format('executor %s: payload holds the forbidden key "%s"', executor_id, problem),
            hint = 'A heartbeat carries small facts and references only; see tidemark.forbidden_key.';
    end if;
    if octet_length(payload::text) > 8192 then
        raise exception using errcode = 'TM005',
            message = format('executor %s: payload has %s bytes, and may have 8192', executor_id,
                             octet_length(payload::text)),
            hint = 'A heartbeat carries small facts and references only.';
    end if;
end
$$;
comment on function tidemark.heartbeat_payload_check(text, jsonb) is
    'Raises TM002 where a heartbeat''s payload is not an object, TM003 where it has a forbidden key at any depth, '
    'TM005 above 8192 bytes.';
