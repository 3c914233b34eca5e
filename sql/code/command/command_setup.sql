create or replace function tidemark.command_setup(topics jsonb, uncompiled jsonb)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    found_ record;
    subjects text[] := '{}';
begin
    for found_ in
        with topic as (
            -- More than a hundred years is without end, and may be more than an interval holds.
            select t.topic, nullif(t.service, '') as service, coalesce(t.there, false) as there,
                   case when t.keeps_ms > 3155760000000 then -1 else t.keeps_ms end as keeps_ms,
                   coalesce(t.own_times, false) as own_times, coalesce(t.unnamed, false) as unnamed
            from jsonb_to_recordset(topics)
                t (topic text, service text, there boolean, keeps_ms bigint, own_times boolean, unnamed boolean)
        )
        select t.topic as subject, case
            when not t.there and t.service is not null and exists (
                select from tidemark.command k where k.service = t.service and k.enabled and not k.dry_run)
                then format('the topic does not exist, or the daemon may not read it, and %s has commands that are '
                            'live', t.service)
            when not t.there and (t.service is null or exists (
                    select from tidemark.service s where s.service = t.service)) and exists (
                select from tidemark.worker_cursor c where c.worker = 'commands' and c.source = 'kafka:' || t.topic)
                then 'the topic was read, and does not exist any more, or the daemon may not read it'
            when not t.there and t.service is null
                then 'commands.topics names the topic, and it does not exist, or the daemon may not read it'
            when t.keeps_ms < 0 or k.retention < t.keeps_ms * interval '1 millisecond'
                then format('the topic keeps records %s, and claims of %s are kept for %s: a record that is read again '
                            'after that is refused, whether it took effect or not',
                            case when t.keeps_ms < 0 then 'without end'
                                 else 'for ' || justify_hours(t.keeps_ms * interval '1 millisecond') end,
                            k.name, k.retention)
            when t.own_times and t.service is null and exists (
                select from tidemark.setting s where s.key = 'commands.shared_topic' and s.value = 'signed')
                and exists (
                    select from tidemark.producer_key p where p.valid_until is not null and p.revoked_at is null)
                then 'producers set the times of records (message.timestamp.type is CreateTime): with a key that has '
                     'expired, one can sign a record of an earlier time'
            when t.unnamed and t.service is null and exists (
                select from tidemark.setting s where s.key = 'commands.shared_topic' and s.value = 'signed')
                and exists (select from tidemark.producer_key p where p.revoked_at is null)
                then 'commands.cluster is not set, so signatures name the connection: what is signed for a topic of '
                     'this name in another cluster, for example of staging, is taken here if its key is registered '
                     'here too'
            end as detail
        from topic t
        left join lateral (
            select k.name, k.retention from tidemark.command k
            where k.enabled and not k.dry_run and k.service = coalesce(t.service, k.service)
            order by k.retention, k.name limit 1) k on true
        union all
        select k.name, format('its schema of payloads does not compile, so all its commands are refused: %s', u.problem)
        from jsonb_to_recordset(uncompiled)
            u (service text, command text, command_version integer, digest text, problem text)
        join tidemark.command k on k.service = u.service and k.command = u.command and k.version = u.command_version
                               and md5(k.payload_schema::text) = u.digest
        where k.enabled
    loop
        continue when found_.detail is null;
        subjects := subjects || found_.subject;
        perform tidemark.finding_open('command_setup', found_.subject, 'warning', left(found_.detail, 1000));
    end loop;
    perform tidemark.finding_close('command_setup', f.subject)
    from tidemark.finding f where f.kind = 'command_setup' and f.closed_at is null and f.subject <> all (subjects);
end
$$;
comment on function tidemark.command_setup(jsonb, jsonb) is
    'Opens the finding command_setup for each topic of commands that is missing, that keeps records for longer than '
    'claims are kept, where the time of a signed record is its producer''s, or where signatures do not name the '
    'cluster; and for each command whose schema of payloads does not compile. Closes the others. topics: [{"topic", '
    '"service", "there", "keeps_ms", "own_times", "unnamed"}], of what the brokers and the configuration say; '
    'uncompiled: [{"service", "command", "command_version", "digest", "problem"}].';
grant execute on function tidemark.command_setup(jsonb, jsonb) to tidemark_executor;
