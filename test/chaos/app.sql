-- The application: accounts whose rows its writers lock, a journal of what they wrote, and the function that an
-- SQL route calls.
create schema app;

create table app.account (key text primary key, version integer not null default 0);
create table app.journal (
    id bigint primary key,
    event text not null,
    key text not null,
    version integer not null,
    kind text not null,
    poison text not null
);
create table app.effect (
    n bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    id bigint not null,
    event text not null,
    key text not null,
    version integer not null
);

create function app.write(k text, id bigint, kind text, poison text) returns void language plpgsql as $$
declare
    v integer;
    event uuid;
begin
    update app.account set version = version + 1 where key = k returning version into strict v;
    event := tidemark.emit('chaos', kind, jsonb_build_object('id', id, 'version', v, 'poison', poison), key => k);
    insert into app.journal values (id, event::text, k, v, kind, poison);
end
$$;

create function app.write_all(keys text[], ids bigint[], kinds text[], poisons text[]) returns void language plpgsql as $$
begin
    for i in 1 .. cardinality(keys) loop
        perform app.write(keys[i], ids[i], kinds[i], poisons[i]);
    end loop;
end
$$;

create function app.take(event jsonb) returns void language plpgsql as $$
begin
    if event -> 'payload' ->> 'poison' = 'sql' then
        raise exception 'poison';
    end if;
    insert into app.effect (id, event, key, version)
    values ((event -> 'payload' ->> 'id')::bigint, event ->> 'event_id', event ->> 'key', (event -> 'payload' ->> 'version')::integer);
end
$$;

create role chaos_writer login;
grant tidemark_emitter to chaos_writer;
grant usage on schema app to chaos_writer;
grant select, update on app.account to chaos_writer;
grant insert on app.journal to chaos_writer;

create role chaos_daemon login;
grant tidemark_executor to chaos_daemon;
grant usage on schema app to chaos_daemon;
grant insert on app.effect to chaos_daemon;
