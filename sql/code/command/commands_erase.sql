-- public
create or replace function tidemark.commands_erase(
    service text,
    reason text,
    tenant text default null,
    key text default null,
    before timestamptz default null,
    dry_run boolean default false,
    most integer default 10000,
    out claims bigint,
    out records bigint,
    out dead_letters bigint,
    out waiting bigint,
    out complete boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    erased constant jsonb := jsonb_build_object('erased', at);
    keys text[];
    ids bigint[];
    letters bigint[];
    alone bigint[];
begin
    if coalesce(btrim(commands_erase.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'erasing commands needs a reason';
    elsif num_nonnulls(commands_erase.tenant, commands_erase.key, commands_erase.before) = 0 then
        raise exception using errcode = 'TM005', message = 'which commands are to be erased is not said',
            hint = 'Give tenant, key (idempotency key) or before (a time).';
    elsif coalesce(most, 0) not between 1 and 100000 then
        raise exception using errcode = 'TM005', message = 'most must be from 1 to 100000';
    elsif not exists (select from tidemark.service s where s.service = commands_erase.service)
        and not exists (select from tidemark.command_claim m where m.service = commands_erase.service)
        and not exists (select from tidemark.command_letters_alone(commands_erase.service, null, null, null, 1)) then
        raise exception using errcode = 'TM004', message = format('there is no service "%s"', commands_erase.service),
            hint = 'Services: select service from tidemark.service;';
    end if;
    if not dry_run then
        -- In turns, as tidemark.command_replay.
        perform from tidemark.service s where s.service = commands_erase.service for no key update;
    end if;
    -- What is parked needs its payload. Its claim and its records stay until it is done.
    with fits as (
        select m.idempotency_key, m.state = 'failed_retryable' as parked from tidemark.command_claim m
        where m.service = commands_erase.service and m.erased_at is null
          and (commands_erase.tenant is null or m.tenant = commands_erase.tenant)
          and (commands_erase.key is null or m.idempotency_key = commands_erase.key)
          and (commands_erase.before is null or m.processed_at < commands_erase.before)
    )
    select (select count(*) from fits f where f.parked),
           array(select f.idempotency_key from fits f where not f.parked limit case when not dry_run then most end)
    into waiting, keys;
    ids := array(
        select r.id from tidemark.command_record r
        where r.service = commands_erase.service and r.erased_at is null
          and (commands_erase.tenant is null or r.call ->> 'tenant' = commands_erase.tenant)
          and (commands_erase.key is null or r.idempotency_key = commands_erase.key)
          and (commands_erase.before is null or r.recorded_at < commands_erase.before)
          and not exists (select from tidemark.command_parked p
                          where p.service = r.service and p.idempotency_key = r.idempotency_key)
        order by r.id limit case when not dry_run then most end);
    letters := array(
        select l.id from tidemark.command_record r
        cross join generate_series(0, r.replays) n
        join tidemark.dead_letter l on l.idempotency_key = tidemark.command_letter_key(r.id, n)
        where r.id = any (ids) and r.why = 'dead_letter');
    alone := array(select tidemark.command_letters_alone(
        commands_erase.service, commands_erase.tenant, commands_erase.key, commands_erase.before,
        case when not dry_run then most end));
    letters := letters || alone;
    claims := cardinality(keys);
    records := cardinality(ids);
    dead_letters := cardinality(letters);
    complete := dry_run or greatest(claims, records, cardinality(alone)) < most;
    if dry_run or claims + records + dead_letters = 0 then
        return;
    end if;
    update tidemark.command_claim m
    set result = case when m.result is not null then erased::json end,
        error_message = case when m.error_message is not null then 'erased' end, erased_at = at
    where m.service = commands_erase.service and m.idempotency_key = any (keys) and m.state <> 'failed_retryable';
    -- Not null: a dead letter that is still to go to Kafka would delete its key there.
    update tidemark.command_record r
    set key = null, value = convert_to(erased::text, 'UTF8'), headers = null, call = null,
        document = case when r.document is not null then erased::json end, erased_at = at
    where r.id = any (ids);
    perform tidemark.dead_letter_discard(l.id, commands_erase.reason) from tidemark.dead_letter l
    where l.id = any (letters) and l.resolved_at is null;
    update tidemark.dead_letter l
    set event_snapshot = (l.event_snapshot - 'context') || jsonb_build_object('payload', erased),
        error_detail = 'erased'
    where l.id = any (letters);
    perform tidemark.api_answers_erase();
    insert into tidemark.audit (action, object, reason, after)
    values ('commands_erase', 'service ' || commands_erase.service, commands_erase.reason,
            jsonb_strip_nulls(jsonb_build_object(
                'tenant', commands_erase.tenant, 'key', commands_erase.key, 'before', commands_erase.before,
                'claims', claims, 'records', records, 'dead_letters', dead_letters)));
end
$$;
comment on function tidemark.commands_erase(text, text, text, text, timestamptz, boolean, integer) is
    'Erases what is kept of commands of a service: of a tenant, of an idempotency key, older than a time, or what fits '
    'all that is given. Stored results and raw records become {"erased": time}, messages "erased"; keys, states, times '
    'and places stay, so nothing runs twice, and a duplicate hears the erased result. Dead letters lose payload and '
    'error text, also those that have outlived their raw record, and open ones are discarded. Parked commands stay, '
    'and are counted as waiting. At most so many claims, '
    'records and letters without a record: until complete call it again, in a transaction of its own. dry_run counts '
    'all. Results and dead '
    'letters in the log are events of the domain commands: tidemark.events_erase. A record that could not be read has '
    'no tenant. Reads all claims of the service, and all dead letters of commands. Raises TM004, TM005.';
grant execute on function tidemark.commands_erase(text, text, text, text, timestamptz, boolean, integer)
    to tidemark_admin;
