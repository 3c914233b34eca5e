package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// A mutant is Tidemark with one of its rules left out. The run must notice.
type mutant struct {
	name   string
	tells  string   // what is left out
	by     string   // the invariants of which one must be violated
	sql    []edit   // of functions in the database
	bug    string   // that the daemon is told (internal/failpoint)
	scenes []string // the faults that meet it
	pause  float64  // share of a daemon's steps; 0: as the run

	commands bool // the run has commands
	shards   bool // the worker of the log has shards
}

// patience is how long a run waits for quiet. A mutant may never be.
func (m *mutant) patience() time.Duration {
	if m.name != "" {
		return time.Minute
	}
	return 2 * time.Minute
}

// noticed reports whether an invariant that it breaks was found to be violated.
func (m *mutant) noticed(found []violation) bool {
	return slices.ContainsFunc(found, func(v violation) bool { return slices.Contains(strings.Fields(m.by), v.Rule) })
}

// edit replaces a part of a function, which must be there.
type edit struct{ function, old, new string }

func (e edit) apply(ctx context.Context, conn *pgx.Conn) error {
	var body string
	if err := conn.QueryRow(ctx, `select pg_get_functiondef(p.oid) from pg_proc p
		where p.pronamespace = 'tidemark'::regnamespace and p.proname = $1`, e.function).Scan(&body); err != nil {
		return fmt.Errorf("function %s: %w", e.function, err)
	}
	if !strings.Contains(body, e.old) {
		return fmt.Errorf("function %s does not hold %q: the mutant is of another version", e.function, e.old)
	}
	_, err := conn.Exec(ctx, strings.ReplaceAll(body, e.old, e.new))
	return err
}

var mutants = func() map[string]mutant {
	all := map[string]mutant{}
	for _, m := range []mutant{
		{
			name: "nofence", by: "I3", tells: "holes are dropped without waiting for the transactions that may own them",
			sql: []edit{{"fence_closed", "return not exists (", "return true or not exists ("}}, scenes: []string{"late-commit"},
		},
		{
			name: "naive", by: "I3", tells: "a plain watermark: what is missing below it is forgotten",
			sql: []edit{{"read_outbox", "b.holes := c.holes - b.seqs + missing;", "b.holes := '{}';"}}, scenes: []string{"late-commit"},
		},
		{
			// The pause stands for a writer who begins between two statements: chance alone takes hours.
			name: "fencefirst", by: "I3", tells: "the fence is noted before the read",
			sql: []edit{
				{"read_outbox", "missing int8multirange := '{}';", "missing int8multirange := '{}'; early text[] := tidemark.fence_now(); slept text := pg_sleep(1.5)::text;"},
				{"read_outbox", "else tidemark.fence_now() end;", "else early end;"},
			},
			scenes: []string{"late-alone"},
		},
		{
			name: "noprepared", by: "I3", tells: "a fence does not know prepared transactions",
			sql: []edit{{"fence_closed", " or l.pid is null", ""}}, scenes: []string{"prepared-crash"},
		},
		{
			// Any of the three alone is often made good by the others.
			name: "noepoch", by: "I3 I4 I7", tells: "nothing fences an owner that was replaced: no epoch, no number of the settle, no look at the watermark",
			sql: []edit{
				{"lease_check", "if not found then", "if false then"},
				{"settle_refusal", "if at_.settles >= settle_no then", "if false then"},
				{"settle_refusal", "elsif settle_refusal.watermark <", "elsif false and settle_refusal.watermark <"},
			},
			scenes: []string{"owner-stop"}, pause: 0.1,
		},
		{
			name: "nobarrier", by: "I2", tells: "what was read is not made durable before it leaves",
			sql:    []edit{{"flush_on_commit", "if current_setting('synchronous_commit') in ('off', 'local') then\n        perform set_config('synchronous_commit', 'on', true);", "if true then\n        perform set_config('synchronous_commit', 'off', true);"}},
			scenes: []string{"async-crash"}, pause: 0.02,
		},
		{
			name: "advancefirst", by: "I3", tells: "the cursor moves with the read, not with the record of what became of it",
			sql:    []edit{{"pass_read", "decided := tidemark.decide_batch(pass_read.worker, read);", "decided := tidemark.decide_batch(pass_read.worker, read);\n        update tidemark.worker_cursor c set watermark_id = read.watermark::text, decided_through = greatest(decided_through::bigint, read.watermark)::text where c.worker = pass_read.worker;"}},
			scenes: []string{"daemon-kill", "wire-cut"}, pause: 0.05,
		},
		{
			name: "nodeadletter", by: "I3", tells: "a failure is recorded, its dead letter is not",
			sql: []edit{{"settle_fresh", "where f.outcome = 'failed';", "where false;"}}, scenes: []string{"maintain"},
		},
		{
			// Either of the two is made good by the other.
			name: "nobehind", by: "I5", tells: "what waits behind an event of its key is due at once, and taken",
			sql: []edit{
				{"settle_fresh", "then 'infinity'", "then at"},
				{"pending_due", "and not (r.ordering = 'key' and", "and not (false and r.ordering = 'key' and"},
			},
			scenes: []string{"key-fails", "receiver-fails"},
		},
		{
			name: "unmarked", by: "I9", tells: "a replay is not marked as one",
			sql: []edit{{"pass_read", "p.error_count, false, p.replay, h.*", "p.error_count, false, false, h.*"}}, scenes: []string{"replay"},
		},
		{
			name: "opengate", by: "I6", tells: "gates are not looked at",
			sql: []edit{{"closed_gate", "end if;\n    select", "end if;\n    return null;\n    select"}}, scenes: []string{"gate-master", "gate-worker"},
		},
		{
			name: "nopause", by: "I6", tells: "a paused route goes on as far as the database says",
			sql:    []edit{{"route_delivers", " and route.paused_at is null", ""}},
			scenes: []string{"route-pause"},
		},
		{
			name: "nogate", by: "I6", tells: "gates are looked at when a page is read, not while it is delivered",
			bug: "nogate", scenes: []string{"gate-slow"},
		},
		{
			name: "nohorizon", by: "I3", tells: "tables: rows are read up to the clock, though writers are still below it",
			sql: []edit{{"source_horizon", "horizon := seen.oldest - margin;", "horizon := clock - margin;"}}, scenes: []string{"late-commit"},
		},
		{
			name: "nosweep", by: "I3", tells: "tables: what a sweep finds behind the watermark is passed over",
			sql: []edit{{"source_query", "fresh := format('e.fits and e.xid >= $7", "fresh := format('e.fits and false and e.xid >= $7"}}, scenes: []string{"late-commit"},
		},
		{
			name: "nosweepledger", by: "I4", tells: "tables: a sweep does not ask what was handled already",
			sql: []edit{{"source_query", "where l.worker_id = $11 and l.source", "where false and l.worker_id = $11 and l.source"}}, scenes: []string{"late-commit"},
		},
		{
			name: "queryblind", by: "I3", tells: "tables: between two transactions of a message nothing counts",
			sql: []edit{{"oldest_transaction", "then a.query_start", "then null"}}, scenes: []string{"message-alone"},
		},
		{
			name: "gatedcapture", by: "I3", tells: "capture asks the gate that stops deliveries",
			sql: []edit{{"capture_template", "listeners boolean;\nbegin\n", "listeners boolean;\nbegin\n    if not tidemark.gate_open('routes.enabled') then return null; end if;\n"}}, scenes: []string{"gate-master"},
		},
		{
			name: "replayblocks", by: "I10", tells: "a live event waits behind a replay of its key",
			sql: []edit{{"pending_due", "p.key and not e.replay", "p.key"}}, scenes: []string{"replay-fails"},
		},
		{
			name: "nonumbering", by: "I11", tells: "tables: a sequence that was restarted is not told from the one that was read",
			sql: []edit{
				{"source_problem", "cursor.metadata ->> 'numbering' is distinct from", "false and cursor.metadata ->> 'numbering' is distinct from"},
				{"source_restarted", "elsif s.safety = 'sequence'", "elsif false and s.safety = 'sequence'"},
			},
			scenes: []string{"table-truncate"},
		},
		{
			name: "shardofseq", by: "I5", tells: "shards: events of one key go to any shard", shards: true,
			sql:    []edit{{"shard_of", "coalesce(pg_catalog.hashtextextended(shard_of.key, 0), shard_of.seq)", "shard_of.seq"}},
			scenes: []string{"key-fails", "receiver-fails", "daemon-kill"},
		},
		{
			name: "shardsfar", by: "I3", tells: "shards: a change of their number goes on at the farthest cursor, not at the lowest", shards: true,
			sql:    []edit{{"worker_shards", "low := was.low;", "low := was.far;"}},
			scenes: []string{"log-shards"},
		},
		{
			name: "noparking", by: "I5", tells: "a queue does not keep events of a key behind each other",
			bug: "noparking", scenes: []string{"key-fails"},
		},
		{
			// The claims make good what a stale pass does twice, but for what claims nothing.
			name: "cmdfence", by: "I7 I12", tells: "commands: nothing fences an owner that was replaced: no epoch, no look at the offset", commands: true,
			sql: []edit{
				{"command_passes_begin", "perform tidemark.lease_check('commands', p.epoch, p.source, p.shard)", "perform"},
				{"command_passes_begin", "if found then", "if false then"},
			},
			scenes: []string{"command-pass-late"}, pause: 0.02,
		},
		{
			name: "noclaim", by: "I4", tells: "commands: a key that was claimed before runs again", commands: true,
			sql:    []edit{{"command_claims_begin", "when i.place > 1 or (i.service", "when false and (i.service"}},
			scenes: []string{"daemon-kill"},
		},
		{
			name: "offsetfirst", by: "I3 I12", tells: "commands: the offset moves before the effect", commands: true,
			sql:    []edit{{"command_passes", "if (call ->> 'offset')::bigint between place and next - 1 then", "if true then"}},
			bug:    "offsetfirst",
			scenes: []string{"daemon-kill", "wire-cut"}, pause: 0.02,
		},
		{
			// It is kept where a crash loses it, as in the memory of a program.
			name: "resultlater", by: "I12", tells: "commands: the result is published by the next transaction", commands: true,
			sql: []edit{
				{"command_publish", "begin\n", "begin\n    if command_publish.kind = 'result' and coalesce(current_setting('chaos.later', true), '') <> 'true' then\n        insert into app.later values (calls, payloads); return;\n    end if;\n"},
				{"command_passes", "    perform tidemark.flush_on_commit();\n\n    foreach", "    perform tidemark.flush_on_commit();\n    perform set_config('chaos.later', 'true', true);\n    with l as (delete from app.later returning *) select count(tidemark.command_publish('result', l.calls, l.payloads)::text) from l into n;\n    perform set_config('chaos.later', '', true);\n\n    foreach"},
			},
			scenes: []string{"server-kill"},
		},
		{
			name: "cmdkeyfence", by: "I5", tells: "commands: later commands of a key do not wait behind a parked one", commands: true,
			sql: []edit{{"command_claims_begin", "order by p.position limit 1) is not null", "order by p.position limit 0) is not null"}}, scenes: []string{"command-key-fails"},
		},
		{
			name: "cmdgate", by: "I6", tells: "commands: gates are not looked at", commands: true,
			sql: []edit{
				{"closed_command", "when 'commands.enabled' <> all (open_)", "when false"},
				{"closed_command", "when own <> all (open_)", "when false"},
				{"closed_gate", "when not tidemark.gate_open('commands.enabled')", "when false"},
			},
			scenes: []string{"command-gate"},
		},
	} {
		all[m.name] = m
	}
	return all
}()

// chosenMutants reads the flag -mutants.
func chosenMutants(text string) ([]mutant, error) {
	names := strings.Split(text, ",")
	if text == "all" {
		names = slices.Sorted(maps.Keys(mutants))
	}
	var list []mutant
	for _, name := range names {
		m, found := mutants[name]
		if !found {
			return nil, fmt.Errorf("there is no mutant %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(mutants)), ", "))
		}
		list = append(list, m)
	}
	return list, nil
}
