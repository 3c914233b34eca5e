create or replace function tidemark.event_fields_check(event jsonb, fields text[], place text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text;
begin
    if jsonb_typeof(event) <> 'object' then
        problem := format('%s is not an object', place);
    else
        problem := (select format('%s has the unknown field "%s"', place, k) from jsonb_object_keys(event) k
                    where k <> all (fields) limit 1);
    end if;
    if problem is not null then
        raise exception using errcode = 'TM002', message = problem,
            hint = 'Fields: ' || array_to_string(fields, ', ') || '.';
    end if;

    if event -> 'lane' <> all (
        array(select to_jsonb(l::text) from unnest(enum_range(null::tidemark.lane)) l) || jsonb 'null') then
        problem := format('%s: there is no lane %s', place, event -> 'lane');
    elsif event -> 'severity' <> all (
        array(select to_jsonb(s::text) from unnest(enum_range(null::tidemark.severity)) s) || jsonb 'null') then
        problem := format('%s: there is no severity %s', place, event -> 'severity');
    end if;
    if problem is not null then
        raise exception using errcode = 'TM002', message = problem,
            hint = 'Lanes: immediate, batch. Severities: info, warning, high, critical.';
    end if;
    return true;
end
$$;
comment on function tidemark.event_fields_check(jsonb, text[], text) is
    'Returns true or raises TM002: for an event of tidemark.emit_many that is not an object, has a field that is not '
    'in fields, or an unknown lane or severity. place begins the message.';
