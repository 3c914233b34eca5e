create or replace function tidemark.letters_unlogged(most integer)
returns table (
    letter bigint,
    event_id uuid,
    route text,
    worker text,
    source text,
    item_id text,
    code text,
    attempts integer,
    trace text)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    with taken as (
        update tidemark.dead_letter l set logged = true
        where l.id = any (array(
            select u.id from tidemark.dead_letter u where not u.logged order by u.id limit letters_unlogged.most
            for update skip locked))
        returning l.*)
    select t.id, t.event_id, r.route_code, w.worker, t.source, t.item_id, t.error_code, t.attempts,
           coalesce(t.event_snapshot ->> 'trace', t.event_snapshot ->> 'trace_id')
    from taken t
    join tidemark.worker w on w.id = t.worker_id
    left join tidemark.outbound_route r on r.id = t.route_id
    order by t.id
$$;
comment on function tidemark.letters_unlogged(integer) is
    'Dead letters that have no line in the log of a daemon yet, oldest first; it marks them. item_id: id of a row, of '
    'a source that is not outbox.';
grant execute on function tidemark.letters_unlogged(integer) to tidemark_executor;
