package cli

import "strings"

// Explanation is what an operator needs to know about a finding, or about a row of tidemark.queue_health.
// docs/operations.md has the same kinds.
type Explanation struct {
	Means string
	Do    string
	next  string // a command. SUBJECT is the finding's subject; of worker/source/shard, WORKER and SOURCE are parts of it
}

// Next is the command to type for a subject.
func (e Explanation) Next(subject string) string {
	worker, rest, _ := strings.Cut(subject, "/")
	source, _, _ := strings.Cut(rest, "/")
	return strings.NewReplacer("SUBJECT", subject, "WORKER", worker, "SOURCE", source).Replace(e.next)
}

// Findings explains the kinds of findings.
var Findings = map[string]Explanation{
	"cursor_silent_gap": {
		"A worker used to run and has stopped, its gates are open, and events wait for it.",
		"Start what runs it: a daemon, or the job that calls route_worker_run. If it is not meant to run, pause it.",
		"tidemark worker run WORKER",
	},
	"heartbeat_silent": {
		"A registered executor has sent no heartbeat for longer than its threshold: it is dead, stuck, or cut off from the database.",
		"Check the process and restart it. If it will not come back, deregister it.",
		"tidemark heartbeat deregister SUBJECT --reason …",
	},
	"worker_failing": {
		"A worker meets the same error again and again, or cannot read within its lease, and makes no progress. The detail has the place, the error and its code. The finding closes when a pass succeeds.",
		"Fix what the error names: a privilege, a table, a function, the server's settings. Nothing is lost meanwhile.",
		"tidemark verify",
	},
	"emit_unregistered": {
		"An emitter called tidemark.emit with types that are not registered or not enabled. These events were not stored.",
		"Register or enable the type, or correct the caller's spelling. emit_strict raises an error instead.",
		"tidemark type list",
	},
	"command_circuit": {
		"A command cannot run: the role of its service lacks a right, a function, table or column is missing, or its function meets an outage, does not end, or ends the session. Its commands wait; others go on.",
		"Grant the right, restore what is missing, or mend the function. The waiting commands then run, and the finding closes.",
		"tidemark verify",
	},
	"command_partition_held": {
		"A partition of a topic of commands does not continue where it was read to: the topic was deleted and made again, or records are lost. Nothing of it is read, other partitions go on.",
		"Find out what became of the records that were not read. Then name the offset to go on from: select tidemark.command_seek(topic, partition, offset, reason);",
		"tidemark finding list",
	},
	"command_waiting": {
		"Parked commands of a service have been due for longer than the setting lag.warn: a gate is closed, a command is off, or nothing tries them.",
		"Open the gate that the detail names, or call tidemark.command_retry.",
		"tidemark gate list",
	},
	"producer_unproved": {
		"The setting commands.shared_topic is claimed: on topics that services share, the name of the producer in a command is believed. Each login that may write there can ask as any producer.",
		"Have producers sign and set it to signed, or give each service its own topic. The finding stays open as long as the setting is claimed.",
		"tidemark command key list",
	},
	"cursor_lag": {
		"A committed event, or row of a table, has waited to be read for longer than the setting lag.warn: the worker does not run, is too slow, or is blocked.",
		"Check whether the worker runs, what it waits for (holes, a slow target inside the database), and whether the load is unusual.",
		"tidemark worker list",
	},
	"cursor_holes": {
		"So many numbers of the log are taken but not committed that the cursor waits: a transaction stays open, or is prepared and forgotten. The detail names it.",
		"End that transaction: pg_terminate_backend, or commit or rollback prepared. Nothing is lost meanwhile.",
		"tidemark worker list",
	},
	"cursor_lease_conflict": {
		"An instance of the worker was fenced: two instances believed that they owned its cursor, or one was paused for longer than its lease. Nothing was recorded twice.",
		"If it repeats, look for a host that hangs or whose processes are stopped, or raise the lease. The finding closes ten minutes after the last conflict.",
		"tidemark heartbeat list",
	},
	"cursor_watermark_regression": {
		"The cursor is not where the worker left it: an operator changed it by hand, or the database was restored beneath a running worker. The worker is held and records nothing.",
		"Compare, then accept a position: worker rewind, to the watermark that it shows or to a lower one. The finding closes when the worker runs again.",
		"tidemark verify",
	},
	"cursor_dlq": {
		"Events of this worker, or rows of this cursor of a table, could not be delivered and are kept as dead letters. The finding closes when none is open.",
		"Find out why they failed, fix that, and replay them; or discard them.",
		"tidemark dead-letter list",
	},
	"event_unreadable": {
		"The payload of an event could not be read within the worker's lease, and the event became a dead letter of each route that claims it. The detail names the latest one. The finding closes when no such letter is open.",
		"Raise the lease of the daemon, or fix the network to the database or the load of the server; then replay the letters. The payload is in the log.",
		"tidemark dead-letter list --code unreadable",
	},
	"dlq_overflow": {
		"More dead letters of this worker are open than the setting dead_letter.overflow allows: a target refuses nearly everything.",
		"Disable the route or fix its target first, then replay.",
		"tidemark dead-letter list",
	},
	"route_misconfigured": {
		"The daemon cannot open the target of this route. The detail says which option, secret or connection is missing. The route's events wait.",
		"Correct the route or the configuration of the daemon. The daemon tries again when the route changes, and every 30 seconds.",
		"tidemark route show SUBJECT",
	},
	"target_down": {
		"The target of this route failed several times in a row, and the breaker is open: the daemon pauses deliveries to it. Its events wait and use up no attempts.",
		"Fix the target. The finding closes with the first delivery that succeeds.",
		"tidemark route show SUBJECT",
	},
	"route_gone": {
		"The target answered that it is gone for good (HTTP 410), and the route was disabled.",
		"Give the route another target and enable it, or leave it off.",
		"tidemark route show SUBJECT",
	},
	"source_changed": {
		"A table that a worker reads has changed: a column, its type or its collation; or it is another table than before, or hides rows. The worker is held.",
		"Restore the table's definition, and the worker continues. After a restore, or if the table was recreated or its sequence set back, rewind the worker or accept its position.",
		"tidemark source check SOURCE",
	},
	"source_misconfigured": {
		"The worker's handler, or a privilege that it needs, is missing. The detail says which, to operators in the server's words. The worker is held.",
		"Create the function or the event type, or grant the privilege, and the worker continues.",
		"tidemark worker show WORKER",
	},
	"source_unreadable": {
		"The transactions of other sessions can no longer be seen, so a source read by time could lose rows. The worker is held.",
		"As superuser: grant pg_read_all_stats to tidemark_owner, and leave track_activities on. The worker then continues by itself.",
		"tidemark source check SOURCE",
	},
	"source_count_mismatch": {
		"A recount of a time bucket of the source differs from what the worker processed: rows were changed, deleted, or came later than the source declares. Or the rows cannot be counted, because the source's filter fails on one of them.",
		"Look at that bucket. If rows were missed, rewind the worker to before it, and find out which writer is so late. Write a filter that fails on no row.",
		"tidemark worker show WORKER",
	},
	"source_clock_back": {
		"The clock of the database was set back, and a source read by time is held.",
		"Correct the server's clock. If a sweep covers the step, the worker continues by itself; else rewind it to that time, or accept its position.",
		"tidemark worker show WORKER",
	},
	"group_invalidation_storm": {
		"More groups than the set fraction of all groups changed before the worker had caught up: it pauses once.",
		"Find out what changed so many rows at once, such as a bulk update. The worker continues by itself, and the finding closes when it has caught up.",
		"tidemark worker show WORKER",
	},
	"capture_gap": {
		"A captured table has more changes than events: a trigger was missing or disabled for a while.",
		"Check that the trigger is attached and enabled, and reconcile the table.",
		"tidemark capture check",
	},
	"capture_unwritten": {
		"Changes of a captured table became no event: their type is not registered, or the event could not be written and the route does not fail closed.",
		"Register and enable the type, or correct the columns that the route shows; then emit what is missing.",
		"tidemark capture check",
	},
}

// Health explains the kinds of rows of tidemark.queue_health, except finding.
var Health = map[string]Explanation{
	"cursor": {
		"A worker's cursor does not move: it has never run, was silent, or waits for numbers of the log that are still open.",
		"Start what runs it; if it waits, end the transaction that the note names.",
		"tidemark worker run WORKER",
	},
	"backlog": {
		"Events, or rows of a table, have waited to be read for longer than the setting lag.warn (bad: lag.bad). Unknown: this role may not read the table, and no role that may has called maintain lately.",
		"Check whether the worker runs and what it waits for.",
		"tidemark worker list",
	},
	"heartbeat": Findings["heartbeat_silent"],
	"dead_letter_event": {
		"Events could not be delivered on this route, and are kept.",
		"Find out why they failed, fix that, and replay them; or discard them.",
		"tidemark dead-letter list --route SUBJECT",
	},
	"pending": {
		"Deliveries of this route are due and are not made. Only a daemon delivers to targets outside the database.",
		"Start a daemon, or look in its log and in the findings for the reason.",
		"tidemark route show SUBJECT",
	},
	"dead_letter_row": {
		"Rows of a table could not be handled, and are kept.",
		"Find out why they failed, fix that, and replay them; or discard them.",
		"tidemark dead-letter list --source SOURCE",
	},
	"pending_row": {
		"Rows of a table that failed are due for another attempt, and the worker does not make it.",
		"Check whether the worker runs and what it waits for.",
		"tidemark pending list",
	},
	"command_parked": {
		"Commands of a service failed with an error that can heal, and wait for their next attempt; later ones of the same key wait behind them.",
		"See which error it is. Call tidemark.command_retry if nothing tries them.",
		"select service, idempotency_key, error_count, next_attempt_at, sqlstate from tidemark.command_parked where service = 'SUBJECT';",
	},
	"job_backlog": {
		"River's jobs wait although they may run, or this role may not read River's table.",
		"Check whether River's clients run and work that queue; or grant select on the table.",
		"grant select on SUBJECT to tidemark_reader;",
	},
	"dead_letter_job": {
		"River has discarded jobs after their last attempt.",
		"Find out why they failed and retry them with River's own tools.",
		"select id, kind, errors from SUBJECT where state = 'discarded';",
	},
}

// ExplainFinding explains a kind of finding. A later version of the schema may have kinds that this build does not
// know.
func ExplainFinding(kind string) Explanation {
	if e, known := Findings[kind]; known {
		return e
	}
	return Explanation{
		"This build does not know this kind of finding; the detail says what was found.",
		"See docs/operations.md of the version that is installed.", "tidemark migrate status",
	}
}
