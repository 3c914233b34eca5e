package main

import "strings"

// explanation is what an operator needs to know of a finding, or of a row of
// tidemark.queue_health. docs/operations.md has the same kinds.
type explanation struct {
	means string
	do    string
	next  string // a command; SUBJECT is what it is about; where that is worker/source/shard, WORKER and SOURCE are parts of it
}

func (e explanation) command(subject string) string {
	worker, rest, _ := strings.Cut(subject, "/")
	source, _, _ := strings.Cut(rest, "/")
	return strings.NewReplacer("SUBJECT", subject, "WORKER", worker, "SOURCE", source).Replace(e.next)
}

// findingKinds are the findings that there are.
var findingKinds = map[string]explanation{
	"cursor_silent_gap": {
		"A worker has run and does not any more, and its gates are open: events wait, and nobody reads them.",
		"Start what runs it, a daemon or the job that calls route_worker_run; if nobody is to run it, pause it.",
		"tidemark worker run WORKER",
	},
	"heartbeat_silent": {
		"An executor that is registered has not beaten for longer than its threshold: it is dead, stuck, or cut off from the database.",
		"Look at the process and restart it. If it will not come back, deregister it.",
		"tidemark heartbeat deregister SUBJECT --reason …",
	},
	"worker_failing": {
		"A worker meets the same error again and again, or cannot read within its lease, and does nothing else. The detail says where, and the error with its code. It closes when a pass goes well.",
		"Mend what the error names: a right, a table, a function, the server's settings. Nothing is lost meanwhile.",
		"tidemark verify",
	},
	"emit_unregistered": {
		"An emitter called tidemark.emit with types that are not registered or not enabled. Nothing was stored of these events.",
		"Register or enable the type, or mend the caller's spelling. Call emit_strict, which raises instead.",
		"tidemark type list",
	},
	"cursor_lag": {
		"An event, or a row of a table, is committed and was not read for longer than the setting lag.warn: the worker does not run, is slower than they come, or something blocks it.",
		"See whether it runs, what it waits for (holes, a slow target inside the database), and whether the load is unusual.",
		"tidemark worker list",
	},
	"cursor_holes": {
		"So many numbers of the log are taken and not committed that the cursor waits: a transaction stays open, or is prepared and forgotten. The detail names it.",
		"End that transaction: pg_terminate_backend, or commit or rollback prepared. Nothing is lost meanwhile.",
		"tidemark worker list",
	},
	"cursor_lease_conflict": {
		"An instance of the worker was fenced: two believed to own its cursor, or one was paused for longer than its lease. Nothing was recorded twice.",
		"If it stays: look for a host that hangs or whose processes are stopped, or raise the lease. It closes ten minutes after the last time.",
		"tidemark heartbeat list",
	},
	"cursor_watermark_regression": {
		"The cursor is not where the worker left it: an operator changed it by hand, or the database was restored beneath a running worker. The worker is held and records nothing.",
		"Compare, then accept a place: worker rewind, to the watermark that it shows or to a lower one. The finding closes when the worker runs again.",
		"tidemark verify",
	},
	"cursor_dlq": {
		"Events of this worker, or rows of this cursor of a table, could not be delivered and are kept as dead letters. It closes when none is open.",
		"See why they failed, mend that, and replay them; or discard them.",
		"tidemark dead-letter list",
	},
	"event_unreadable": {
		"The payload of an event did not come within the lease of the worker, and the event became a dead letter of each route that claims it. The detail names the latest one. It closes when no such letter is open.",
		"Raise the lease of the daemon, or mend the line to the database or the load of the server; then replay the letters. The payload is in the log.",
		"tidemark dead-letter list --code unreadable",
	},
	"dlq_overflow": {
		"More dead letters of this worker are open than the setting dead_letter.overflow: a target refuses nearly everything.",
		"Switch the route off or mend its target first, then replay.",
		"tidemark dead-letter list",
	},
	"route_misconfigured": {
		"The daemon cannot open the target of this route: the detail says which option, secret or connection is missing. Its events wait.",
		"Correct the route or the configuration of the daemon. It is tried again when the row changes, or every 30 seconds.",
		"tidemark route show SUBJECT",
	},
	"target_down": {
		"The target of this route failed several times in a row and is left alone for a while: the breaker is open. Its events wait and use up no attempts.",
		"Mend the target. It closes by itself with the first delivery that succeeds.",
		"tidemark route show SUBJECT",
	},
	"route_gone": {
		"The target answered that it is gone for good (HTTP 410), and the route was switched off.",
		"Give the route another target and enable it, or leave it off.",
		"tidemark route show SUBJECT",
	},
	"source_changed": {
		"A table that a worker reads has changed: a column, its type or its collation, or it is another table than the one that was read, or hides rows. The worker is held.",
		"Put the table right, and it goes on. After a restore, or where the table was made anew or its sequence set back, rewind the worker or accept its place.",
		"tidemark source check SOURCE",
	},
	"source_misconfigured": {
		"The worker's handler or a right of its is missing: the detail says which, to operators in the server's words. It is held.",
		"Make the function or the event type, or grant the right, and it goes on.",
		"tidemark worker show WORKER",
	},
	"source_unreadable": {
		"Nobody may see the transactions of other sessions any more, so a source that goes by time could lose rows. The worker is held.",
		"As superuser: grant pg_read_all_stats to tidemark_owner, and leave track_activities on. It goes on by itself.",
		"tidemark source check SOURCE",
	},
	"source_count_mismatch": {
		"Counted again, a time bucket of the source has another number of rows than the worker has processed: rows were changed, deleted, or came later than the source declares. Or rows cannot be counted, since the source's filter fails for one of them.",
		"Look at that bucket. If rows were missed, rewind the worker before it, and ask who writes so late. Write a filter that fails for no row.",
		"tidemark worker show WORKER",
	},
	"source_clock_back": {
		"The clock of the database was set back, and a source that goes by time is held.",
		"See to the clock of the server. Where a sweep covers the step it goes on by itself; else rewind the worker to that time, or accept its place.",
		"tidemark worker show WORKER",
	},
	"group_invalidation_storm": {
		"Groups were touched more often than the set fraction of all groups before the worker had caught up: it rests once.",
		"Find what changed so many rows at once, a bulk update for one. It goes on by itself; the finding closes when it has caught up.",
		"tidemark worker show WORKER",
	},
	"capture_gap": {
		"A captured table has more changes than events: a trigger was missing or disabled for a while.",
		"See that the trigger is attached and enabled, and reconcile the table.",
		"tidemark capture check",
	},
	"capture_unwritten": {
		"Changes of a captured table became no event: their type is not registered, or the event could not be written and the route does not fail closed.",
		"Register and enable the type, or mend what the route shows of a row; then emit what is missing.",
		"tidemark capture check",
	},
}

// healthKinds are the kinds of rows of tidemark.queue_health, but finding.
var healthKinds = map[string]explanation{
	"cursor": {
		"A worker's cursor does not move: it has never run, was silent, or waits for numbers of the log that are still open.",
		"Start what runs it; if it waits, end the transaction that the note names.",
		"tidemark worker run WORKER",
	},
	"backlog": {
		"Events, or rows of a table, wait to be read for longer than the setting lag.warn (bad: lag.bad). Unknown: this role may not read the table, and maintain was not called lately by one that may.",
		"See whether the worker runs and what it waits for.",
		"tidemark worker list",
	},
	"heartbeat": findingKinds["heartbeat_silent"],
	"dead_letter_event": {
		"Events could not be delivered on this route, and are kept.",
		"See why they failed, mend that, and replay them; or discard them.",
		"tidemark dead-letter list --route SUBJECT",
	},
	"pending": {
		"Deliveries of this route are due and nobody makes them: targets outside the database are served by a daemon.",
		"Start a daemon, or see in its log and in the findings why it does not deliver.",
		"tidemark route show SUBJECT",
	},
	"dead_letter_row": {
		"Rows of a table could not be handled, and are kept.",
		"See why they failed, mend that, and replay them; or discard them.",
		"tidemark dead-letter list --source SOURCE",
	},
	"pending_row": {
		"Rows of a table that failed are due for another attempt, and the worker does not make it.",
		"See whether the worker runs and what it waits for.",
		"tidemark pending list",
	},
	"job_backlog": {
		"River's jobs wait although they may run, or this role may not look at River's table.",
		"See whether River's clients run and work that queue; or grant select on the table.",
		"grant select on SUBJECT to tidemark_reader;",
	},
	"dead_letter_job": {
		"River has given jobs up after their last attempt.",
		"See why they failed and retry them with River's own tools.",
		"select id, kind, errors from SUBJECT where state = 'discarded';",
	},
}

// explain is for the kind of a finding. One that a later version of the schema has brought
// is not known here.
func explain(kind string) explanation {
	if e, known := findingKinds[kind]; known {
		return e
	}
	return explanation{"This build does not know the kind; the detail says what was found.", "See docs/operations.md of the version that is installed.", "tidemark migrate status"}
}
