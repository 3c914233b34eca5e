-- public
-- The words of the view cause: each has a page docs/runbooks/<cause>.md. A finding is a cause of its kind, unless
-- tidemark.cause_list knows what causes it.
create or replace view tidemark.cause_kind as
select k.cause, k.means, k.todo, k.sql, k.cli
from (values
    ('daemon_dead',
     'A daemon died, hangs, or cannot reach the database: it was not stopped. If no other runs, nothing is delivered '
     'to targets outside the database; events wait, and none is lost.',
     'Start it again, under the same name. If it will not come back and others do its work: tidemark heartbeat '
     'deregister.',
     '{}',
     '{}'),
    ('no_daemon',
     'Events are due for targets outside the database, and no daemon runs. Only a daemon delivers them.',
     'Start one. The events wait, and none is lost.',
     '{}',
     array['tidemark run']),
    ('disarmed',
     'This database is a copy of an installation that is live: a restored backup or a clone. So that events do not '
     'leave twice, nothing leaves from a copy.',
     'If it is to stay a copy, say so with the command, and stop daemons that run on it. If it takes the place of '
     'the original, whose daemons are stopped: tidemark stage live --reason ….',
     '{}',
     '{}'),
    ('open_transaction',
     'A session began a transaction and does not end it. The numbers that it took, or rows that a source read by '
     'time must wait for, stay open, and sessions that want its locks wait.',
     'End the session, after a look at what it does. Its transaction is rolled back; nothing that was committed is '
     'lost. To prevent it, set idle_in_transaction_session_timeout for the role.',
     '{}',
     '{}'),
    ('tables_locked',
     'A transaction has locked tables of Tidemark, and goes on. Writers, workers or both wait for it, and until it '
     'ends it cannot be seen what else is wrong.',
     'End it, after a look at what it does: its work is rolled back. Lock the log by hand only with a lock_timeout '
     'and a short transaction.',
     '{}',
     '{}'),
    ('prepared_transaction',
     'A transaction was prepared (two-phase commit) and neither committed nor rolled back. It holds its locks and '
     'its numbers until then, also through a restart of the server.',
     'Ask the transaction manager how it was to end. The command rolls it back; if its other parts committed: commit '
     'prepared.',
     '{}',
     '{}'),
    ('sessions_hidden',
     'A transaction holds numbers of the log, and the server does not show to Tidemark for how long: the right '
     'pg_read_all_stats is missing.',
     'Grant the right, as a superuser.',
     '{}',
     '{}'),
    ('gate_closed',
     'An operator closed a gate, or paused a worker, more than an hour ago, and events wait for it.',
     'Ask who closed it whether the reason is over, and open it. The events are then delivered in their order.',
     '{}',
     '{}'),
    ('route_paused',
     'An operator paused a route, and its events wait for it. None is lost, and no attempt is used up.',
     'Ask who paused it whether the reason is over, test its target (tidemark route test), and resume it. What is '
     'due is then tried at once, in order; retries and parked events at their time.',
     '{}',
     '{}'),
    ('letter_job_waiting',
     'A job that replays or discards dead letters gets nowhere: a gate is closed, each try fails, its letters wait for '
     'a route that is off or paused, or no daemon takes it up. What it has done stays done.',
     'End what it waits for; it then goes on by itself. Or cancel it: tidemark dead-letter job cancel ID --reason ….',
     '{}',
     '{}'),
    ('dead_letters',
     'Events could not be delivered on this route, and are kept. The facts count them by reason, and show the latest '
     'error of each.',
     'Fix the target or the event, then replay: the command sends those of this route only, oldest first. Discard '
     'what is not wanted.',
     '{}',
     '{}'),
    ('credentials_refused',
     'The target refuses the credentials of this route for everything (HTTP 401 or 403; not_authorized of Kafka or '
     'NATS). The breaker is open: its events wait, and no attempt is used up.',
     'Correct the secret in the configuration of the daemon, then send it SIGHUP or restart it. The next delivery '
     'closes this.',
     '{}',
     array['tidemark route show {subject}']),
    ('two_copies',
     'Another copy of this database delivers to the target too: a physical copy, such as a restored base backup or an '
     'old primary, is live with the same identity. A route: its target says so, and refuses both. A broker, kafka or '
     'nats: the other copy leaves marks there, and events leave both.',
     'Decide which copy goes on. On the other the command stops all that leaves; its events stay. Then tell a target '
     'that refuses, and the copy that goes on delivers what waits.',
     array['select tidemark.stage_set(''dry_run'', ''another copy delivers'');'],
     array['tidemark stage dry_run --reason ''another copy delivers''']),
    ('slow_target',
     'The target answers, but so slowly that events wait. A daemon works on it.',
     'The command lets more deliveries go at once. With ordering by key, only different keys go at once. If the '
     'target takes no more, make it faster: its handler should store the event and answer.',
     '{}',
     '{}'),
    ('worker_behind',
     'A committed event, or row of a table, has waited to be read for longer than the setting lag.warn (bad: '
     'lag.bad): the worker does not run, is too slow, or is blocked. Unknown: this role may not read the table, and '
     'no role that may has called maintain lately.',
     'Compare the rate with what waits. If it does not fall, look at what the worker waits for: holes, a slow target '
     'inside the database, a handler, the load of the server.',
     '{}',
     array['tidemark worker show {worker}']),
    ('sweep_behind',
     'The sweep of a source, which finds rows that came late, takes longer than sweep_every allows: such rows wait '
     'for longer than the setting lag.warn (bad: lag.bad).',
     'Look at why it takes long: many late rows with a slow handler, a large sweep_window, small pages. If it may take '
     'as long, the command gives it the time.',
     '{}',
     '{}'),
    ('capture_disabled',
     'A captured table changes without events: its trigger is missing, altered or disabled.',
     'The commands let the trigger fire, note from when on events are missing, and emit an event for each row that '
     'has none.',
     '{}',
     '{}'),
    ('capture_broken',
     'A captured table lacks a column that its inbound route shows: a route that is fail_closed lets the write of '
     'the application fail rather than lose the event. Or the table has another name or schema than the route says: '
     'its changes make no events.',
     'Bring the column back, or take it out of the contract with the command. Consumers of the event miss it from '
     'then on. Give the table its name back: what it missed is then found, as capture_gap. If another object has '
     'the name, the command lets the route follow the table, and what it missed is to be backfilled.',
     '{}',
     '{}'),
    ('retention_held',
     'The log keeps events past their retention, because something still needs them. The disk fills.',
     'Resume or give up what holds them. maintain then drops the partitions within a minute.',
     '{}',
     '{}'),
    ('payloads_kept',
     'Payloads of a domain are past its payload_retention and are not erased: they are still to be delivered, or '
     'belong to dead letters that are open.',
     'Resume what the detail names, and replay or discard the letters. maintain then erases them.',
     '{}',
     array['tidemark dead-letter list']),
    ('partition_missing',
     'A partition of the log was dropped by hand, with events that may not have been delivered. Deliveries that '
     'waited for them become dead letters with the code event_missing.',
     'Restore the partition from a backup if you can. If not, drop what is left of its evidence, discard the '
     'letters, and emit again what you know from elsewhere.',
     '{}',
     '{}'),
    ('clock_step',
     'The clock of the database server was set by 30 seconds or more. After a step back, what waits for a time of the '
     'old clock waits longer: retries, and the leases of those that died.',
     'See that the server''s clock is right now, then the command makes what waits due in time. Workers of sources '
     'that are read by time have a cause of their own: source_clock_back.',
     '{}',
     '{}'),
    ('upkeep_failing',
     'tidemark.maintain, which keeps the log in shape, fails each time, is held up by a session that keeps rows or '
     'the log locked, if only as a reader, or is not called. Events are accepted and delivered meanwhile. The disk '
     'fills, payloads stay past their retention, and findings that are over stay open.',
     'Call it by hand: the command shows the error, or what postponed it. A daemon has the error in its log (upkeep '
     'failed). End the transactions that the facts name, after a look at what they do. Where no daemon runs, call it '
     'every minute.',
     '{}',
     '{}'),
    ('disk_filling',
     'The database nears the size that its disk has for it (the setting disk.size). When the disk is full, writes '
     'fail, emits among them.',
     'Enlarge the disk, and say so: tidemark setting set disk.size …. Or give up old events: the commands halve the '
     'retention of the log. No event can be replayed once it is past it.',
     '{}',
     '{}'),
    ('replication_slot',
     'A replication slot is used by no one. The server keeps all WAL since, and may keep dead rows, until the disk '
     'is full.',
     'If its standby or consumer will not come back, drop it.',
     '{}',
     '{}'),
    ('standby_transaction',
     'A transaction on a standby with hot_standby_feedback is open for long. The primary keeps the dead rows since '
     'then for it: tables grow, and reading what waits takes longer.',
     'End it on the standby, or set hot_standby_feedback = off there.',
     '{}',
     '{}'),
    ('connections',
     'Nearly all connections of the server are taken. The next ones are refused, among them those of daemons.',
     'End the idle sessions of the application that has most, and give it a smaller pool.',
     '{}',
     '{}'),
    ('cursor_silent_gap',
     'A worker used to run and has stopped, its gates are open, and events wait for it.',
     'Start what runs it: a daemon, or the job that calls route_worker_run. If it is not meant to run, pause it. A '
     'partition of Kafka is read by a daemon whose commands.topics has its topic; the runbook says when to forget a '
     'topic.',
     '{}',
     array['tidemark worker run {worker}']),
    ('heartbeat_silent',
     'A registered executor has sent no heartbeat for longer than its threshold: it is dead, stuck, or cut off from '
     'the database.',
     'Check the process and restart it. If it will not come back, deregister it.',
     array['select tidemark.heartbeat_deregister({subject}, ''will not come back'');'],
     array['tidemark heartbeat deregister {subject} --reason ''will not come back''']),
    ('worker_failing',
     'A worker meets the same error again and again, or cannot read within its lease, and makes no progress. The '
     'detail has the place, the error and its code. The finding closes when a pass succeeds.',
     'Fix what the error names: a privilege, a table, a function, the server''s settings. Nothing is lost meanwhile.',
     array['select * from tidemark.verify();'],
     array['tidemark verify']),
    ('emit_unregistered',
     'An emitter called tidemark.emit with types that are not registered or not enabled. These events were not '
     'stored.',
     'Register or enable the type, or correct the caller''s spelling. emit_strict raises an error instead.',
     '{}',
     '{}'),
    ('command_circuit',
     'A command cannot run: the role of its service lacks a right, a function, table or column is missing, or its '
     'function meets an outage, does not end, or ends the session. Its commands wait; others go on.',
     'Grant the right, restore what is missing, or fix the function. The waiting commands then run, and the finding '
     'closes.',
     array['select * from tidemark.verify();'],
     array['tidemark verify']),
    ('command_partition_held',
     'A partition of a topic of commands does not continue where it was read to: the topic was deleted and made '
     'again, or records are lost. Nothing of it is read, other partitions go on.',
     'Find out what became of the records that were not read. Then name the offset to go on from: tidemark command '
     'seek TOPIC --partition N --offset N --reason REASON.',
     '{}',
     array['tidemark finding list']),
    ('producer_unproved',
     'The setting commands.shared_topic is claimed: on topics that services share, the name of the producer in a '
     'command is believed. Each login that may write there can ask as any producer.',
     'Have producers sign their commands, then set it to signed; or give each service a topic of its own. This stays '
     'open as long as the setting is claimed.',
     '{}',
     array['tidemark command key list']),
    ('command_setup',
     'Commands that are sent could not arrive, not be recognised later, or not be checked: a topic is missing, a topic '
     'keeps records for longer than claims are kept, producers set the times of signed records, or the schema of a '
     'command does not compile. The detail says which.',
     'Create the topic or let the daemon read it; set retention.ms of the topic, or the retention of the command; set '
     'message.timestamp.type of the topic to LogAppendTime; or register a schema that tidemark command lint takes.',
     '{}',
     array['tidemark command list']),
    ('command_waiting',
     'Parked commands of a service have been due for longer than the setting lag.warn: a gate is closed, a command '
     'is off, or nothing tries them.',
     'Open the gate that the detail names, or call tidemark.command_retry.',
     '{}',
     array['tidemark gate list']),
    ('cursor_holes',
     'So many numbers of the log are taken but not committed that the cursor waits: a transaction stays open, or is '
     'prepared and forgotten. The detail names it.',
     'End that transaction: pg_terminate_backend, or commit or rollback prepared. Nothing is lost meanwhile.',
     '{}',
     '{}'),
    ('cursor_lease_conflict',
     'An instance of the worker was fenced: two instances believed that they owned its cursor, or one was paused for '
     'longer than its lease. Nothing was recorded twice.',
     'If it repeats, look for a host that hangs or whose processes are stopped, or raise the lease. The finding '
     'closes ten minutes after the last conflict.',
     '{}',
     array['tidemark heartbeat list']),
    ('cursor_watermark_regression',
     'The cursor is not where the worker left it: an operator changed it by hand, or the database was restored '
     'beneath a running worker. The worker is held and records nothing.',
     'Compare, then accept a position: worker rewind, to the watermark that it shows or to a lower one. The finding '
     'closes when the worker runs again.',
     array['select * from tidemark.verify();'],
     array['tidemark verify']),
    ('cursor_dlq',
     'Events of this worker, or rows of this cursor of a table, could not be delivered and are kept as dead letters. '
     'The finding closes when none is open.',
     'Find out why they failed, fix that, and replay them; or discard them.',
     '{}',
     array['tidemark dead-letter list']),
    ('event_unreadable',
     'The payload of an event could not be read within the worker''s lease, and the event became a dead letter of '
     'each route that claims it. The detail names the latest one. The finding closes when no such letter is open.',
     'Raise the lease of the daemon, or fix the network to the database or the load of the server; then replay the '
     'letters. The payload is in the log.',
     '{}',
     array['tidemark dead-letter replay --code unreadable']),
    ('dlq_overflow',
     'More dead letters of this worker are open than the setting dead_letter.overflow allows: a target refuses '
     'nearly everything.',
     'Fix the target. Until then pause the route: its events wait, and no attempt is used up. Resume it, then replay.',
     '{}',
     array['tidemark dead-letter list']),
    ('route_misconfigured',
     'The daemon cannot open the target of this route. The detail says which option, secret or connection is '
     'missing. The route''s events wait.',
     'Correct the route or the configuration of the daemon. The daemon tries again when the route changes, and every '
     '30 seconds.',
     '{}',
     array['tidemark route show {subject}']),
    ('target_down',
     'The target of this route failed several times in a row, and the breaker is open: the daemon pauses deliveries '
     'to it. Its events wait and use up no attempts.',
     'Fix the target. The finding closes with the first delivery that succeeds.',
     '{}',
     array['tidemark route show {subject}']),
    ('route_gone',
     'The target answered that it is gone for good (HTTP 410), and the route was disabled.',
     'Give the route another target and enable it, or leave it off.',
     '{}',
     array['tidemark route show {subject}']),
    ('source_changed',
     'A table that a worker reads has changed: a column, its type or its collation; or it is another table than '
     'before, or hides rows. The worker is held.',
     'Restore the table''s definition, and the worker continues. After a restore, or if the table was recreated or '
     'its sequence set back, rewind the worker or accept its position.',
     '{}',
     array['tidemark source check {source}']),
    ('source_misconfigured',
     'The worker''s handler, or a privilege that it needs, is missing. The detail says which, to operators in the '
     'server''s words. The worker is held.',
     'Create the function or the event type, or grant the privilege, and the worker continues.',
     '{}',
     array['tidemark source check {source}',
           'tidemark worker show {worker}']),
    ('source_unreadable',
     'The transactions of other sessions can no longer be seen, so a source read by time could lose rows. The worker '
     'is held.',
     'As superuser: grant pg_read_all_stats to tidemark_owner, and leave track_activities on. The worker then '
     'continues by itself.',
     array['grant pg_read_all_stats to tidemark_owner;'],
     '{}'),
    ('source_count_mismatch',
     'A recount of a time bucket of the source differs from what the worker processed: rows were changed, deleted, '
     'or came later than the source declares. Or the rows cannot be counted, because the source''s filter fails on '
     'one of them.',
     'Look at that bucket. If rows were missed, rewind the worker to before it, and find out which writer is so '
     'late. Write a filter that fails on no row.',
     '{}',
     array['tidemark worker show {worker}']),
    ('source_clock_back',
     'The clock of the database was set back, and a source read by time is held.',
     'Correct the server''s clock. If a sweep covers the step, the worker continues by itself; else rewind it to '
     'that time, or accept its position.',
     '{}',
     array['tidemark worker show {worker}']),
    ('group_invalidation_storm',
     'More groups than the set fraction of all groups changed before the worker had caught up: it pauses once.',
     'Find out what changed so many rows at once, such as a bulk update. The worker continues by itself, and the '
     'finding closes when it has caught up.',
     '{}',
     array['tidemark worker show {worker}']),
    ('capture_gap',
     'A captured table has more changes than events: a trigger was missing, disabled or bypassed for a while. The '
     'detail has the count.',
     'The command emits an event for each row that has none, as the row is now. Changes that no row shows any more '
     'can only be accepted: --accept.',
     array['select g.name, e.* from tidemark.capture_gap g cross join lateral tidemark.capture_gap_emit(g.id, ''they '
           'had no event'') e where g.name = {subject} and g.resolved_at is null;'],
     array['tidemark capture reconcile --table {subject} --emit --reason ''they had no event''']),
    ('capture_unwritten',
     'Changes of a captured table became no event: their type is not registered, or the event could not be written '
     'and the route does not fail closed.',
     'Register and enable the type, or correct the columns that the route shows. What had no event gets none by '
     'itself: see the runbook.',
     array['select * from tidemark.capture_check();'],
     array['tidemark capture check']),
    ('cursor',
     'A worker''s cursor does not move: it has never run, was silent, or waits for numbers of the log that are still '
     'open.',
     'Start what runs it; if it waits, end the transaction that the note names.',
     '{}',
     array['tidemark worker run {worker}']),
    ('heartbeat',
     'A registered executor has sent no heartbeat for longer than its threshold: it is dead, stuck, or cut off from '
     'the database.',
     'Check the process and restart it. If it will not come back, deregister it.',
     '{}',
     array['tidemark heartbeat list']),
    ('pending',
     'Deliveries of this route are due and are not made, although a daemon lives.',
     'Look in the log of the daemon, and at the route: its rate, its concurrency, its retries.',
     '{}',
     array['tidemark route show {subject}']),
    ('dead_letter_row',
     'Rows of a table could not be handled, and are kept.',
     'Find out why they failed, fix that, and replay them; or discard them.',
     '{}',
     array['tidemark dead-letter replay --source {source}']),
    ('pending_row',
     'Rows of a table that failed are due for another attempt, and the worker does not make it.',
     'Check whether the worker runs and what it waits for.',
     '{}',
     array['tidemark pending list --source {source}']),
    ('command_parked',
     'Commands of a service failed with an error that can heal, and wait for their next attempt; later ones of the '
     'same key wait behind them.',
     'See which error it is. Call tidemark.command_retry if nothing tries them.',
     array['select service, idempotency_key, error_count, next_attempt_at, sqlstate from tidemark.command_parked '
           'where service = {subject};'],
     '{}'),
    ('job_backlog',
     'River''s jobs wait although they may run, or this role may not read River''s table.',
     'Check whether River''s clients run and work that queue; or grant select on the table, and usage on its schema.',
     array['grant select on {name} to tidemark_reader;'],
     '{}'),
    ('dead_letter_job',
     'River has discarded jobs after their last attempt.',
     'Find out why they failed and retry them with River''s own tools.',
     array['select id, kind, errors from {name} where state = ''discarded'';'],
     '{}')) k (cause, means, todo, sql, cli);
comment on view tidemark.cause_kind is
    'The causes that the view cause can show: what each means, what to do, and what fixes it if that view does not '
    'know better (tidemark.cause_commands).';
grant select on tidemark.cause_kind to tidemark_reader, tidemark_executor;
