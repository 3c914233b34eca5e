-- The function of the commands of workload 6, and the tables and functions of the contestants that work by hand.
create table bench.commanded (
  id int8 generated always as identity primary key,
  n int8 not null,
  pad text not null
);

create function bench.command(payload jsonb) returns jsonb language plpgsql as $$
begin
  insert into bench.commanded (n, pad) values ((payload ->> 'n')::int8, payload ->> 'pad');
  return jsonb_build_object('n', payload -> 'n');
end
$$;

create table bench.inbox (
  service text not null,
  key text not null,
  fingerprint bytea not null,
  state text not null,
  result json,
  done_at timestamptz not null default clock_timestamp(),
  primary key (service, key)
);

create table bench.reply (
  id int8 generated always as identity primary key,
  key text not null,
  document jsonb not null
);

create table bench.place (
  partition int4 primary key,
  next int8 not null
);

-- The limit: claims, effects, results and the offset of a batch, each by one statement.
create function bench.command_set(part int4, upto int8, keys text[], payloads jsonb[]) returns void
language plpgsql as $$
begin
  with input as (
    select i.key, i.payload, i.n from unnest(keys, payloads) with ordinality i (key, payload, n)
  ), claimed as (
    insert into bench.inbox (service, key, fingerprint, state, result)
    select 'bench', i.key, sha256(convert_to(i.payload::text, 'UTF8')), 'processed', json_build_object('n', i.payload -> 'n')
      from input i order by i.key
    on conflict do nothing
    returning key
  ), done as (
    insert into bench.commanded (n, pad)
    select (i.payload ->> 'n')::int8, i.payload ->> 'pad' from input i join claimed c using (key) order by i.n
  )
  insert into bench.reply (key, document)
  select i.key, jsonb_build_object('status', case when c.key is null then 'duplicate' else 'processed' end, 'key', i.key,
                                   'result', jsonb_build_object('n', i.payload -> 'n'))
    from input i left join claimed c using (key) order by i.n;
  update bench.place p set next = upto where p.partition = part;
end
$$;

-- Row by row: what a consumer calls for each record, in a transaction of its own.
create function bench.command_one(part int4, upto int8, k text, payload jsonb) returns void
language plpgsql as $$
declare
  answer jsonb;
begin
  insert into bench.inbox (service, key, fingerprint, state)
  values ('bench', k, sha256(convert_to(payload::text, 'UTF8')), 'processed') on conflict do nothing;
  if found then
    answer := bench.command(payload);
    update bench.inbox i set result = answer::json where i.service = 'bench' and i.key = k;
    insert into bench.reply (key, document) values (k, jsonb_build_object('status', 'processed', 'key', k, 'result', answer));
  else
    insert into bench.reply (key, document)
    select k, jsonb_build_object('status', 'duplicate', 'key', k, 'result', i.result) from bench.inbox i
     where i.service = 'bench' and i.key = k;
  end if;
  update bench.place p set next = upto where p.partition = part;
end
$$;

-- What a JDBC sink does: rows by their key, without a claim or a result. The same command again writes the row again.
create table bench.upserted (
  n int8 primary key,
  pad text not null
);

create function bench.command_upsert(part int4, upto int8, keys text[], payloads jsonb[]) returns void
language sql as $$
  insert into bench.upserted (n, pad) select (p ->> 'n')::int8, p ->> 'pad' from unnest(payloads) p
  on conflict (n) do update set pad = excluded.pad;
  update bench.place set next = upto where partition = part;
$$;

do $$
begin
  perform tidemark.service_set('bench');
  grant usage on schema bench to tidemark_service_bench;
  grant insert on bench.commanded to tidemark_service_bench;
  perform tidemark.command_set('bench', 'take', 1, '{"function": "bench.command", "payload_schema": {"type": "object", "required": ["n"]}}');
  perform tidemark.command_allow('bench', 'bench');
  perform tidemark.route_set('results.bench', '{"domain": "commands", "type": "result.bench", "target_kind": "notify", "target_ref": "bench",
    "enabled": true, "dry_run": false}');
  perform tidemark.command_set('bench', 'take', 1, '{"enabled": true, "dry_run": false}');
  perform tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.bench.enabled', true);
end
$$;
