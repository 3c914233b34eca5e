-- public
create or replace function tidemark.emit_strict(
    domain text,
    type text,
    payload jsonb default '{}',
    key text default null,
    stream text default null,
    lane tidemark.lane default 'immediate',
    severity tidemark.severity default 'info',
    subject_table text default null,
    subject_ref text default null,
    idempotency_key text default null,
    trace text default null,
    actor text default null,
    occurred_at timestamptz default null)
returns uuid
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    id constant uuid := tidemark.emit(domain, type, payload, key, stream, lane, severity, subject_table, subject_ref,
                                      idempotency_key, trace, actor, occurred_at);
begin
    if id is null then
        raise exception using errcode = 'TM001',
            message = format('event type %s/%s is not registered or not enabled', domain, type),
            hint = format('Register it: select tidemark.type_set(%L, %L);', domain, type);
    end if;
    return id;
end
$$;
comment on function tidemark.emit_strict(text, text, jsonb, text, text, tidemark.lane, tidemark.severity, text, text,
                                         text, text, text, timestamptz) is
    'Like tidemark.emit, but raises TM001 where the type is not registered or not enabled.';
grant execute on function tidemark.emit_strict(text, text, jsonb, text, text, tidemark.lane, tidemark.severity, text,
                                               text, text, text, text, timestamptz) to tidemark_emitter;
