-- tidemark.cause shows what is wrong by its cause.

set local role tidemark_owner;

create type tidemark.trouble as (
    cause text,
    subject text,
    status text,
    since timestamptz,
    found text,
    waiting bigint,
    folds text[],
    sql text[],
    cli text[]
);
comment on type tidemark.trouble is 'A cause of trouble that is open, as a part of tidemark.cause finds it.';
comment on column tidemark.trouble.cause is 'One of tidemark.cause_kind.';
comment on column tidemark.trouble.subject is 'Of which worker, route, table, session, …';
comment on column tidemark.trouble.status is 'bad: it stops work. warn: it will. unknown: it cannot be seen.';
comment on column tidemark.trouble.since is 'Since when; null: unknown.';
comment on column tidemark.trouble.found is 'The facts, in a sentence.';
comment on column tidemark.trouble.waiting is 'How many events, rows or commands wait for it, counted up to 10000 each; null: none, or unknown.';
comment on column tidemark.trouble.folds is 'Rows of tidemark.queue_health that are its symptoms: kind and name, or kind and * for all of a kind.';
comment on column tidemark.trouble.sql is 'Statements that mend it, to be run in this order.';
comment on column tidemark.trouble.cli is 'Commands that mend it, likewise.';

-- Who closed a gate, when and why.
create index audit_object on tidemark.audit (object, id);
