-- public
create or replace view tidemark.cause as
select c.status, c.cause, c.subject, c.since, c.found, c.waiting, c.symptoms, c.means, c.todo, c.sql, c.cli, c.finding
from tidemark.cause_seen() c;
comment on view tidemark.cause is
    'What is wrong, by its cause, worst first. status: bad (it stops work), unknown (this role cannot see it), warn '
    '(it will stop work, or an operator should look). cause is a word of tidemark.cause_kind, subject says of what. '
    'since: when it began. found: the facts. waiting: how many events, rows or commands wait for it, counted up to '
    '10000 each. symptoms: the rows of tidemark.queue_health that it explains, which have no row here. means and todo '
    'explain it. sql and cli: what fixes it, to be pasted as it is, in this order. finding: the number of the finding '
    'it was reported as, if it was. Reads no table that grows, beyond a bounded part of its index, and waits for no '
    'lock for longer than half a second: where its tables are locked, it shows who has locked them (tables_locked).';
grant select on tidemark.cause to tidemark_reader, tidemark_executor;
