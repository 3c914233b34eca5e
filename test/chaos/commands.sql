-- The commands of two services. Each adds a link to the chain of its key: the chain shows which commands took effect, and in
-- which order.
create table app.chain (service text not null, key text not null, state text not null, primary key (service, key));
create table app.taken (
    n bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    service text not null,
    id bigint not null,
    key text not null
);
create table app.trouble (key text primary key); -- commands of these keys fail for now
create unlogged table app.later (calls jsonb[], payloads jsonb[]); -- for the mutant resultlater
grant usage on schema app to tidemark_owner;
grant all on app.later to tidemark_owner;

create function app.take_command(payload jsonb, context jsonb) returns jsonb language plpgsql as $$
declare
    link text;
begin
    insert into taken (service, id, key) values (context ->> 'service', (payload ->> 'id')::bigint, payload ->> 'key');
    insert into chain as c values (context ->> 'service', payload ->> 'key', md5(' ' || (payload ->> 'id')))
    on conflict (service, key) do update set state = md5(c.state || ' ' || (payload ->> 'id'))
    returning state into link;
    if payload ? 'poison' then
        raise exception 'poison';
    elsif exists (select from trouble t where t.key = payload ->> 'key') then
        raise serialization_failure using message = 'trouble';
    end if;
    return jsonb_build_object('link', link);
end
$$;

do $$
declare
    name text;
begin
    foreach name in array array['till', 'depot', 'mirror'] loop
        perform tidemark.service_set(name);
        execute format('grant usage on schema app to %1$I; grant select, insert, update on app.chain to %1$I;
            grant insert on app.taken to %1$I; grant select on app.trouble to %1$I', 'tidemark_service_' || name);
        perform tidemark.command_set(name, 'take', 1, '{"function": "app.take_command", "timeout": "15 seconds",
            "retry_policy": {"max_attempts": 100, "base_seconds": 0.1, "max_seconds": 1},
            "payload_schema": {"type": "object", "required": ["id", "key"], "properties": {"id": {"type": "integer"}}}}');
        perform tidemark.command_allow(name, 'shop');
        perform tidemark.route_set('results.' || name, jsonb_build_object(
            'domain', 'commands', 'type', 'result.' || name, 'target_kind', 'kafka', 'target_ref', 'db-results.' || name,
            'options', '{"connection": "main", "format": "payload"}'::jsonb, 'ordering', 'key', 'enabled', true, 'dry_run', false,
            'retry_policy', '{"max_attempts": 100, "base_seconds": 0.1, "max_seconds": 1}'::jsonb));
        perform tidemark.route_set('dlq.' || name, jsonb_build_object(
            'domain', 'commands', 'type', 'dead_letter.' || name, 'target_kind', 'kafka', 'target_ref', 'db-dlq.' || name,
            'options', '{"connection": "main", "format": "raw"}'::jsonb, 'ordering', 'key', 'enabled', true, 'dry_run', false,
            'retry_policy', '{"max_attempts": 100, "base_seconds": 0.1, "max_seconds": 1}'::jsonb));
        perform tidemark.command_set(name, 'take', 1, '{"enabled": true, "dry_run": false}');
        perform tidemark.gate_set('commands.' || name || '.enabled', true);
    end loop;
    perform tidemark.gate_set('commands.enabled', true);
end
$$;
