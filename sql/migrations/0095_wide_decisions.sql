-- Evidence of a span of numbers is found without reading all that is later. Nearly all ranges are narrow, and end soon after the
-- span; the few that are wide, as where an event came long after its neighbours, are found by this index.

set local role tidemark_owner;

-- tidemark.decisions has the same condition. A batch reads 5,000 events by default, so that few ranges are in it: the others cost an
-- insert a look at the condition.
create index decision_wide on tidemark.decision using gist (pg_catalog.int8range(first_seq, last_seq, '[]')) where last_seq - first_seq >= 10000;
