create or replace function tidemark.log_inflow()
returns numeric
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    clock constant timestamptz := clock_timestamp();
    last_seq constant bigint := (select max(o.seq) from tidemark.outbox o);
    events integer;
    first record;
begin
    -- The most events that came in the last minutes.
    foreach events in array '{10000,1000,100,10}'::integer[] loop
        select o.seq, o.created_at into first from tidemark.outbox o where o.seq > last_seq - events
        order by o.seq limit 1;
        if first.created_at > clock - interval '2 minutes' then
            return round((last_seq - first.seq + 1) / greatest(extract(epoch from clock - first.created_at), 60), 1);
        end if;
    end loop;
    return 0;
end
$$;
comment on function tidemark.log_inflow() is
    'How many events a second came to the log in the last minute or two, by the numbers of the last 10, 100, 1000 or '
    '10000 of them. Looks up four events.';
grant execute on function tidemark.log_inflow() to tidemark_reader, tidemark_executor;
