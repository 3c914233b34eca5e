create or replace function tidemark.payload_check(
    domain text, type text, payload jsonb, schema jsonb, metadata_only boolean, place text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text := tidemark.payload_error(payload, schema);
begin
    if problem is not null then
        raise exception using errcode = 'TM002',
            message = format('%s%s/%s: %s', place, domain, type, problem),
            hint = 'See the schema: select schema from tidemark.event_type.';
    end if;

    if metadata_only then
        problem := tidemark.forbidden_key_in(payload);
        if problem is not null then
            raise exception using errcode = 'TM003',
                message = format('%s%s/%s: payload holds the forbidden key "%s"', place, domain, type, problem),
                hint = format('Domain %s is metadata-only: send a reference instead, or see tidemark.forbidden_key.',
                              domain);
        end if;
    end if;
    return true;
end
$$;
comment on function tidemark.payload_check(text, text, jsonb, jsonb, boolean, text) is
    'Returns true or raises: TM002 for a payload that breaks its schema, TM003 for a forbidden key. place begins the '
    'message.';
