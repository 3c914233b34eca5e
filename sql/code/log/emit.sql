-- public
-- The insert takes RowExclusiveLock on tidemark.outbox before the identity's default takes the number. The
-- cursor's fence rests on that order (tidemark.read_outbox): never take a number in an earlier statement.
create or replace function tidemark.emit(
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
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    id uuid := tidemark.event_uuid(at);
    login constant name := tidemark.login(quick => true);
    earlier uuid;
    asleep boolean;
    listeners boolean;
begin
    if not tidemark.event_is_small(payload, key, stream, subject_table, subject_ref, trace, actor, occurred_at) then
        perform tidemark.event_check('', payload, key, stream, subject_table, subject_ref, trace, actor, occurred_at);
    end if;

    if emit.idempotency_key is not null then
        perform tidemark.idempotency_key_check(emit.idempotency_key, '');
        loop
            insert into tidemark.emit_key (domain, idempotency_key, event_id, created_at)
            select t.domain, emit.idempotency_key, id, at from tidemark.event_type t
            where t.domain = emit.domain and t.type = emit.type and t.enabled
              and (not t.restricted or tidemark.domain_check(emit.domain, '', login))
            on conflict do nothing;
            exit when found;
            -- The claim above waited for the transaction that was inserting the same key; a new statement sees the
            -- commit of that transaction.
            earlier := (
                select k.event_id from tidemark.emit_key k
                join tidemark.event_type t on t.domain = k.domain and t.type = emit.type and t.enabled
                where k.domain = emit.domain and k.idempotency_key = emit.idempotency_key);
            if earlier is not null then
                return earlier;
            elsif not exists (select from tidemark.event_type t
                              where t.domain = emit.domain and t.type = emit.type and t.enabled) then
                perform tidemark.emit_noted(domain, type, 1);
                return null;
            end if;
            -- The key was past its retention, and tidemark.emit_keys_expire deleted it meanwhile: claim it again.
        end loop;
    end if;

    -- One statement checks the registry and the event and inserts the row: this costs half as much as three statements.
    insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key,
                                 subject_table, subject_ref, idempotency_key, trace, actor, emitted_by, payload)
    select id, at, coalesce(emit.occurred_at, at), coalesce(emit.lane, 'immediate'), coalesce(emit.severity, 'info'),
           emit.domain, emit.type, emit.stream, emit.key, emit.subject_table, emit.subject_ref,
           emit.idempotency_key, emit.trace, coalesce(emit.actor, login),
           nullif(login, coalesce(emit.actor, login)), emit.payload
    from tidemark.event_type t
    where t.domain = emit.domain and t.type = emit.type and t.enabled
      and (t.unchecked and jsonb_typeof(emit.payload) = 'object'
           or (not t.restricted or tidemark.domain_check(emit.domain, '', login))
              and tidemark.payload_check(emit.domain, emit.type, emit.payload, t.schema, t.metadata_only, ''))
    returning (select s.value = 'true' from tidemark.setting s where s.key = 'notify.listeners_enabled') into listeners;
    if not found then
        -- The type was disabled after the claim. A key without its event would make the next emit with that key a false
        -- duplicate.
        delete from tidemark.emit_key k
        where k.domain = emit.domain and k.idempotency_key = emit.idempotency_key and k.event_id = id;
        perform tidemark.emit_noted(domain, type, 1);
        return null;
    end if;
    if current_setting('transaction_isolation') not like 'read %' then
        perform tidemark.registry_check(emit.domain, emit.type);
    end if;
    -- Last, after the number is taken: a worker that went to sleep before it saw the number holds this lock by now.
    asleep := case when pg_try_advisory_lock(1953064301, 1) then not pg_advisory_unlock(1953064301, 1)
                   -- A sleeping worker shares the lock. Another writer would hold it exclusively, for a moment.
                   when pg_try_advisory_lock_shared(1953064301, 1)
                        then pg_advisory_unlock_shared(1953064301, 1) end;
    if asleep or listeners then
        perform tidemark.wake(array[emit.domain], case when listeners then jsonb_build_object(
            'layer', 'event', 'event_id', id, 'event_domain', emit.domain, 'event_type', emit.type,
            'lane', coalesce(emit.lane, 'immediate'), 'occurred_at', coalesce(emit.occurred_at, at)) end,
                              coalesce(listeners, false));
    end if;
    return id;
end
$$;
comment on function tidemark.emit(text, text, jsonb, text, text, tidemark.lane, tidemark.severity, text, text, text,
                                  text, text, timestamptz) is
    'Emits one event in the caller''s transaction and returns its id. Returns null where the type is not registered or '
    'not enabled, and stores only a trace (tidemark.unregistered_emits). Call tidemark.emit_strict, which raises in '
    'that case, unless a missing type must not fail the caller. If an earlier event has the same (domain, '
    'idempotency_key), returns its id and stores nothing. Raises TM002 (the payload is not an object or breaks its '
    'schema), TM003 (a forbidden key in a metadata-only domain), TM005 (a text over 1024 bytes, a payload over the '
    'setting emit.payload_limit, an idempotency_key that begins with "tidemark:", an occurred_at that is infinite or '
    'outside the years 1 to 9999), TM014 (the domain is restricted to other roles) and TM015 (in a maintenance '
    'command). Source: S1 fn_iu_emit_event.';
grant execute on function tidemark.emit(text, text, jsonb, text, text, tidemark.lane, tidemark.severity, text, text,
                                        text, text, text, timestamptz) to tidemark_emitter;
