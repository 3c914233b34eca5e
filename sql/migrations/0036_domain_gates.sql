-- breaking: workers of before do not know the gates of domains, and would deliver behind a closed one.
-- A gate for each domain: domain.<name>.enabled.

set local role tidemark_owner;

drop function if exists tidemark.closed_switch;
drop function if exists tidemark.deliver;
drop function if exists tidemark.deliver_inside;
drop function if exists tidemark.beat;
drop function if exists tidemark.pass_read;

alter type tidemark.gates add attribute closed text[];
comment on type tidemark.gates is 'State of everything that can forbid a worker to route: the master gate, the worker''s gate, whether this cluster is armed, and the domains whose gate is closed.';
alter type tidemark.batch add attribute closed text[];
comment on type tidemark.batch is 'What tidemark.read_outbox read: the events in groups (seqs: the numbers of all of them), the routes that were looked at for that, and the cursor as it will be once they are settled. blocked_by names what keeps too many holes open; null: nothing. closed: the domains whose gate was closed.';

alter table tidemark.pending
    add column domain text,
    add column held boolean not null default false,
    add constraint held_is_not_due check (not held or next_attempt_at = 'infinity');
comment on column tidemark.pending.domain is 'Domain of the event; null: the event was gone from the log when it was looked up.';
comment on column tidemark.pending.held is 'True: put aside until the gate of its domain is open. Default false.';
comment on column tidemark.pending.next_attempt_at is 'Not before; infinity: when the event before it of its key is done or, held, when the gate of its domain is open.';
update tidemark.pending p
set domain = coalesce((select o.domain from tidemark.outbox o where o.seq = p.seq),
                      (select l.event_snapshot ->> 'domain' from tidemark.dead_letter l where l.id = p.dead_letter_id));
create index pending_domain on tidemark.pending (worker_id, domain, next_attempt_at) where not held;
create index pending_held on tidemark.pending (worker_id, domain, seq) where held;
grant select (domain, held) on tidemark.pending to tidemark_reader;
