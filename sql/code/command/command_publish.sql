create or replace function tidemark.command_publish(kind text, calls jsonb[], payloads jsonb[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    types text[] := '{}';
    keys text[] := '{}';
    traces text[] := '{}';
    call jsonb;
begin
    if cardinality(calls) = 0 then
        return;
    end if;
    foreach call in array calls loop
        types := types || concat(kind, '.', call ->> 'service');
        keys := keys || coalesce(call ->> 'key', call ->> 'idempotency_key');
        traces := traces || case when strpos(call ->> 'trace_id', '-') > 0 then call ->> 'trace_id' end;
    end loop;
    perform tidemark.emit_all(
        '[]', true, true, domains => array_fill('commands'::text, array[cardinality(calls)]), types => types,
        payloads => payloads, keys => keys, traces => traces,
        actors => array_fill('tidemark'::text, array[cardinality(calls)]));
end
$$;
comment on function tidemark.command_publish(text, jsonb[], jsonb[]) is
    'Emits results (kind result) or dead letters (dead_letter) of commands, as events of the domain commands, in the '
    'transaction of the effect. An event has the ordering key and the trace of its command.';
