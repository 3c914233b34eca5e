create or replace function tidemark.capture_backfill_add(relation regclass, name text, type text, reason text)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    route tidemark.inbound_route;
    key_columns text[];
    last_number bigint;
    backfill bigint;
begin
    if coalesce(btrim(capture_backfill_add.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a backfill needs a reason',
            hint = 'Say why: it is kept in tidemark.audit.';
    end if;
    perform tidemark.capture_backfill_own(capture_backfill_add.relation, capture_backfill_add.name);
    route := tidemark.capture_backfill_route(capture_backfill_add.name);
    key_columns := tidemark.capture_backfill_order(capture_backfill_add.relation, capture_backfill_add.name);
    if not exists (select from tidemark.event_type t
                   where t.domain = route.domain and t.type = capture_backfill_add.type and t.enabled) then
        raise exception using errcode = 'TM001',
            message = format('event type %s/%s is not registered or not enabled', route.domain,
                             capture_backfill_add.type),
            hint = format('Register it: select tidemark.type_set(%L, %L);', route.domain, capture_backfill_add.type);
    end if;
    last_number := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    insert into tidemark.capture_backfill as b (relation, name, domain, type, reason, begun_by, snapshot, known_to,
                                                known_next, key_columns)
    values (capture_backfill_add.relation, capture_backfill_add.name, route.domain, capture_backfill_add.type,
            capture_backfill_add.reason, tidemark.login(), pg_current_snapshot(), last_number, last_number,
            key_columns)
    on conflict (name) where finished_at is null and cancelled_at is null do nothing
    returning b.id into backfill;
    if backfill is null then
        raise exception using errcode = 'TM005',
            message = format('a backfill of %s is under way', capture_backfill_add.name),
            hint = (
                select format('Go on: select * from tidemark.capture_backfill_step(%1$s); or give it up: select '
                              'tidemark.capture_backfill_cancel(%1$s, ''reason'');', max(b.id))
                from tidemark.capture_backfill b
                where b.name = capture_backfill_add.name and b.finished_at is null and b.cancelled_at is null);
    end if;
    insert into tidemark.audit (action, object, reason, after)
    values ('capture_backfill', capture_backfill_add.name, capture_backfill_add.reason,
            jsonb_build_object('backfill', backfill, 'type', capture_backfill_add.type));
    return backfill;
end
$$;
comment on function tidemark.capture_backfill_add(regclass, text, text, text) is
    'Part of tidemark.capture_backfill_begin, which keeps writers of the table away meanwhile.';
grant execute on function tidemark.capture_backfill_add(regclass, text, text, text) to tidemark_admin;
