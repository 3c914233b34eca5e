-- What the application committed against what it received: its own tables, none of Tidemark's.
with late as (
    select coalesce(sum((version < before)::int), 0) as n
    from (select version, lag(version) over (partition by unit_id order by at) as before from demo.received) r
)
select (select count(*) from demo.journal) as committed,
       (select count(*) from demo.received) as received,
       (select count(*) from demo.journal j where not exists (select from demo.received r where r.event_id = j.event_id)) as lost,
       (select count(*) - count(distinct event_id) from demo.received) as doubled,
       (select n from late) as out_of_order,
       (select count(*) from demo.received r where not exists (select from demo.journal j where j.event_id = r.event_id)) as invented
