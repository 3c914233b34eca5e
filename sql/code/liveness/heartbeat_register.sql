-- public
create or replace function tidemark.heartbeat_register(
    executor_id text,
    kind text default null,
    domain_scope text[] default '{}',
    cadence interval default '60 seconds',
    threshold interval default null,
    payload jsonb default '{}',
    reason text default null)
returns setof tidemark.heartbeat
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    cadence_seconds constant numeric := extract(epoch from cadence);
    threshold_seconds constant numeric := coalesce(extract(epoch from threshold), 3 * cadence_seconds);
    unknown text;
    kind_ text;
    before jsonb;
    made tidemark.heartbeat;
begin
    if executor_id is null or executor_id !~ '^[^[:space:][:cntrl:]]{1,200}$' then
        raise exception using errcode = 'TM005',
            message = format('executor_id is %s, and must be 1 to 200 characters without white space',
                             coalesce(quote_literal(left(executor_id, 300)), 'null')),
            hint = 'Name what runs and where, e.g. nightly_export or mailer/host-7.';
    end if;
    select to_jsonb(h), h.kind into before, kind_ from tidemark.heartbeat h
    where h.executor_id = heartbeat_register.executor_id for update;
    kind_ := coalesce(heartbeat_register.kind, kind_, 'external_worker');
    if not exists (select from tidemark.heartbeat_kind k where k.kind = kind_) then
        raise exception using errcode = 'TM004', message = format('there is no kind of executor "%s"', kind_),
            hint = format('Kinds: select kind from tidemark.heartbeat_kind; a new one: insert into '
                          'tidemark.heartbeat_kind values (%s);', quote_nullable(kind_));
    end if;
    if cadence_seconds is null or cadence_seconds not between 1 and 31536000
        or cadence_seconds <> trunc(cadence_seconds) then
        raise exception using errcode = 'TM005',
            message = format('executor %s: cadence is %s, and must be whole seconds, from 1 to a year', executor_id,
                             coalesce(cadence::text, 'null')),
            hint = 'The time from one beat to the next, e.g. cadence => ''30 seconds''.';
    end if;
    if threshold_seconds not between cadence_seconds and 31536000 or threshold_seconds <> trunc(threshold_seconds) then
        raise exception using errcode = 'TM005',
            message = format('executor %s: threshold is %s, and must be whole seconds, at least the cadence of %s s, '
                             'at most a year', executor_id, threshold, trunc(cadence_seconds)),
            hint = 'After that long without a beat, the executor is silent. The default is three times the cadence.';
    end if;
    select s.d into unknown from unnest(domain_scope) s (d)
    where not exists (select from tidemark.domain d where d.domain = s.d) limit 1;
    if found then
        raise exception using errcode = 'TM004',
            message = format('executor %s: there is no domain "%s"', executor_id, unknown),
            hint = 'Domains: select domain from tidemark.domain; an empty scope is all of them.';
    end if;
    perform tidemark.heartbeat_payload_check(executor_id, payload);

    insert into tidemark.heartbeat as h (executor_id, kind, domain_scope, expected_cadence_seconds,
                                         stale_threshold_seconds, payload, watched_since)
    values (heartbeat_register.executor_id, kind_, coalesce(heartbeat_register.domain_scope, '{}'), cadence_seconds,
            threshold_seconds, heartbeat_register.payload, clock_timestamp())
    on conflict (executor_id) do update
    set kind = excluded.kind, domain_scope = excluded.domain_scope,
        expected_cadence_seconds = excluded.expected_cadence_seconds,
        stale_threshold_seconds = excluded.stale_threshold_seconds, payload = excluded.payload,
        watched_since = excluded.watched_since, registered_at = clock_timestamp(), registered_by = tidemark.login()
    returning h.* into made;
    insert into tidemark.audit (action, object, reason, before, after)
    values ('heartbeat_register', 'heartbeat ' || made.executor_id, heartbeat_register.reason, before, to_jsonb(made));
    return next made;
end
$$;
comment on function tidemark.heartbeat_register(text, text, text[], interval, interval, jsonb, text) is
    'Registers an executor, or changes one: a beat is expected every cadence (whole seconds, default 60 seconds), and '
    'the executor is silent after longer than threshold without a beat (default three times the cadence, at least the '
    'cadence). kind is one of tidemark.heartbeat_kind (default: unchanged, and external_worker for a new one); '
    'domain_scope lists the domains that it covers, empty: all. From now on its beat is expected, even if it has never '
    'beaten. An executor worker/source/shard is a worker''s cursor, whose beats are its passes. Returns the row; '
    'tidemark.audit records it. Raises TM002 (payload is not an object), TM003 (forbidden key), TM004 (unknown kind or '
    'domain), TM005. Source: S4 fn_queue_heartbeat_register.';
grant execute on function tidemark.heartbeat_register(text, text, text[], interval, interval, jsonb, text)
    to tidemark_admin;
