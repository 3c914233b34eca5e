-- Where retention was raised before the upgrade, the claims of records from before then are kept for the shorter one,
-- too. The audit has the changes, also of a command that was deleted and registered again.

set local role tidemark_owner;

update tidemark.command c
set retention_from = r.at + interval '2 days', retention_before = r.retention
from (
    select k.id, max(a.at) as at, min(a.before) as retention
    from (select a.object, a.at, (coalesce(a.after, a.before) ->> 'retention')::interval as retention,
                 coalesce(a.before ->> 'retention', lag(coalesce(a.after, a.before) ->> 'retention')
                                                    over (partition by a.object order by a.id))::interval as before
          from tidemark.audit a where a.object like 'command %' and a.action in ('insert', 'update', 'delete')) a
    join tidemark.command k on a.object = 'command ' || k.name
    where a.retention > a.before and a.at + k.retention + interval '2 days' > pg_catalog.clock_timestamp()
    group by k.id) r
where c.id = r.id and c.retention_from is null;
