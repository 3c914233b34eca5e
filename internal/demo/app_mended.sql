create or replace function demo.receive(event jsonb) returns void language plpgsql as $$
begin
    insert into demo.received (seq, event_id, unit_id, version)
    values ((event ->> 'seq')::bigint, (event ->> 'event_id')::uuid, event -> 'payload' ->> 'unit_id',
            case when event -> 'payload' ->> 'version_id' ~ '^\d+$' then (event -> 'payload' ->> 'version_id')::int else 0 end);
end $$;
