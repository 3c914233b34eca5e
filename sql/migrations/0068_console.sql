-- People who act through the console, and writes of the API that are sent twice.

set local role tidemark_owner;

alter table tidemark.audit
    add column person text default nullif(pg_catalog.current_setting('tidemark.person', true), '');
comment on column tidemark.audit.person is 'The person for whom the login acted, as the console claims (setting tidemark.person); null: the login itself.';

create table tidemark.api_answer (
    person text not null,
    key text not null,
    request bytea not null,
    answer jsonb,
    at timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (person, key)
);
create index api_answer_at on tidemark.api_answer (at);
comment on table tidemark.api_answer is 'What the API answered to writes that carried an Idempotency-Key, kept for a day.';
comment on column tidemark.api_answer.person is 'Who asked.';
comment on column tidemark.api_answer.key is 'The Idempotency-Key.';
comment on column tidemark.api_answer.request is 'SHA-256 of method, path and body.';
comment on column tidemark.api_answer.answer is 'What was answered; null only inside the transaction that does the work.';
comment on column tidemark.api_answer.at is 'When.';
