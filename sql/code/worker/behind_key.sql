create or replace function tidemark.behind_key(route tidemark.outbound_route, numbers bigint[], ahead bigint[])
returns int8multirange
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    worker_ constant integer := (select w.id from tidemark.worker w where w.worker = route.worker);
begin
    if (behind_key.route).ordering <> 'key' or not exists (
        select from tidemark.pending p
        where p.worker_id = worker_ and p.route_id = (behind_key.route).id and not p.replay)
    then
        return '{}';
    end if;
    return (
        select coalesce(range_agg(int8range(o.seq, o.seq + 1)), '{}')
        from tidemark.events(behind_key.numbers) o
        -- One look for each event: only the index of keys has this order.
        cross join lateral (
            select from tidemark.pending p
            where p.worker_id = worker_ and p.route_id = (behind_key.route).id and p.key between o.key and o.key
              and not p.replay and p.seq <> all (behind_key.ahead)
            order by p.key, p.seq limit 1) p
        where o.key is not null);
end
$$;
comment on function tidemark.behind_key(tidemark.outbound_route, bigint[], bigint[]) is
    'The events, of those given in rising order, that must wait on a route that keeps the order of keys: a pending '
    'event of their key comes before them and is not in ahead.';
grant execute on function tidemark.behind_key(tidemark.outbound_route, bigint[], bigint[]) to tidemark_executor;
