create or replace function tidemark.command_publish(kind text, calls jsonb[], payloads jsonb[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform tidemark.emit_all('[]', true, true,
        domains => array_agg('commands'::text), types => array_agg(kind || '.' || (c.call ->> 'service') order by c.n),
        payloads => array_agg(c.payload order by c.n),
        keys => array_agg(coalesce(c.call ->> 'key', c.call ->> 'idempotency_key') order by c.n),
        traces => array_agg(coalesce(c.call ->> 'trace',
                                     case when c.call ->> 'trace_id' like '%-%' then c.call ->> 'trace_id' end)
                            order by c.n),
        actors => array_agg('tidemark'::text))
    from unnest(calls, payloads) with ordinality c (call, payload, n)
    having count(*) > 0;
end
$$;
comment on function tidemark.command_publish(text, jsonb[], jsonb[]) is
    'Emits results (kind result) or dead letters (dead_letter) of commands, as events of the domain commands, in the '
    'transaction of the effect. An event has the ordering key and the trace of its command.';
