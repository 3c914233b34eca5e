-- Payloads of a domain may have a retention of their own.

set local role tidemark_owner;

alter table tidemark.domain add column payload_retention interval;
alter table tidemark.domain add constraint payload_retention_is_an_hour_or_more
    check (payload_retention between interval '1 hour' and interval '100 years') not valid;
alter table tidemark.domain validate constraint payload_retention_is_an_hour_or_more;
comment on column tidemark.domain.payload_retention is 'How long payloads of its events stay, at least an hour: then tidemark.maintain erases them, and events and evidence stay. Null (default): as long as the event.';

create table tidemark.payload_retention (
    domain text primary key references tidemark.domain on delete cascade,
    passed_seq bigint not null default 0,
    settled_seq bigint not null default 0,
    next_seq bigint not null default 0,
    fence text[] not null default '{}',
    events bigint not null default 0,
    dead_letters bigint not null default 0,
    at timestamptz,
    kept_seq bigint,
    kept_for text,
    open_letters integer not null default 0
);
comment on table tidemark.payload_retention is 'How far the payloads of each domain with a retention are erased (tidemark.payloads_expire). It only moves forward, so that no event is looked at twice.';
comment on column tidemark.payload_retention.domain is 'The domain.';
comment on column tidemark.payload_retention.passed_seq is 'The payloads of its events up to this number are erased.';
comment on column tidemark.payload_retention.settled_seq is 'No transaction owns a number up to this one that is not visible.';
comment on column tidemark.payload_retention.next_seq is 'The next settled_seq, once no member of fence is left.';
comment on column tidemark.payload_retention.fence is 'Virtual transaction ids that could still own a number up to next_seq.';
comment on column tidemark.payload_retention.events is 'Events whose payload was erased.';
comment on column tidemark.payload_retention.dead_letters is 'Dead letters whose payload was erased.';
comment on column tidemark.payload_retention.at is 'When it was looked after last.';
comment on column tidemark.payload_retention.kept_seq is 'The event past the retention that is still needed; null: none.';
comment on column tidemark.payload_retention.kept_for is 'What needs it.';
comment on column tidemark.payload_retention.open_letters is 'Open dead letters past the retention, which keep their payloads; at most 1000 are counted.';
grant select on tidemark.payload_retention to tidemark_reader, tidemark_executor;

-- Letters and messages that still have a payload, by what maintain asks for.
create index dead_letter_payload on tidemark.dead_letter ((event_snapshot ->> 'domain'), (resolved_at is null), seq)
    where source = 'outbox' and error_detail is distinct from 'erased';
create index attempt_detail on tidemark.attempt (seq) where detail is not null;
