create or replace function tidemark.system_event(
    type text,
    severity tidemark.severity,
    subject_table text,
    subject_ref text,
    payload jsonb,
    stream text default null,
    must boolean default false)
returns uuid
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Not by tidemark.emit, which refuses this domain to every role.
    return (tidemark.emit_all(jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
        'domain', 'system', 'type', system_event.type, 'key', system_event.subject_ref,
        'stream', system_event.stream, 'severity', system_event.severity,
        'subject_table', system_event.subject_table, 'subject_ref', system_event.subject_ref,
        'actor', 'tidemark')) || jsonb_build_object('payload', system_event.payload)),
        false, true))[1];
exception when others then
    if must and tidemark.is_transient(sqlstate) then
        raise;
    end if;
    -- A schema or a forbidden key of the type must not roll back the transaction that the event reports.
    raise warning 'event system/% was not emitted: %', type, sqlerrm using errcode = sqlstate;
    return null;
end
$$;
comment on function tidemark.system_event(text, tidemark.severity, text, text, jsonb, text, boolean) is
    'Emits an event of the domain system and returns its id. Null: its type is not registered or not enabled, or emit '
    'refused it, with a warning. It never fails the transaction that it reports; with must it raises what is not the '
    'event''s fault (tidemark.is_transient), and the caller tries it later.';
