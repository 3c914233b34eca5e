create or replace view tidemark.torn_partitions as
select p.first_seq, p.end_seq, array_agg(t.name || '_p' || p.first_seq order by t.name desc) as names,
       string_agg(t.name || '_p' || p.first_seq, ', ' order by t.name desc) as left_
from (values ('outbox'), ('decision'), ('attempt')) t (name)
cross join lateral tidemark.partitions(('tidemark.' || t.name)::regclass) p
where p.first_seq is not null
group by 1, 2 having count(*) < 3;
comment on view tidemark.torn_partitions is
    'Partitions of the log and of its evidence, of which one was dropped by hand: the log and its evidence have the '
    'same partitions. names and left_: those that are left. Reads the catalogs only.';
grant select on tidemark.torn_partitions to tidemark_reader;
