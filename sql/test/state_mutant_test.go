package test

import (
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var everyMutant = flag.Bool("every-mutant", false, "hunt all mutants of the state machine, also those that chance hides for long")

// unsound are the hazards of docs/reliability.md, each as the functions would be without the rule that meets it.
var unsound = []struct {
	name    string
	subject subject
	edits   []edit
	stop    string // where a worker stops, if it stops; "": anywhere
}{
	{"a plain watermark", theLog, []edit{{"read_outbox", "b.holes := c.holes - b.seqs + missing;", "b.holes := '{}';"}}, ""},
	{"no fence", theLog, []edit{{"fence_closed", "return not exists (", "return true or not exists ("}}, ""},
	{"the fence is noted before the read", theLog, []edit{
		{"read_outbox", "missing int8multirange := '{}';", "missing int8multirange := '{}'; early text[] := tidemark.fence_now();"},
		{"read_outbox", "else tidemark.fence_now() end;", "else early end;"},
	}, theRead},
	{"the holes are read before the fence is looked at", theLog, []edit{
		{"read_outbox", "case when not closed then", "case when not tidemark.fence_closed(c.fence) then"},
	}, afterTheRead},
	{"a full page of late events drops the holes", theLog, []edit{{"read_outbox", "when b.late < batch_limit then '{}'", "when true then '{}'"}}, ""},
	{"strict order passes what is open", theStrictLog, []edit{{"read_outbox", "if not isempty(missing) then", "if false then"}}, ""},
	{"no epoch", theLog, []edit{{"lease_check", "if not found then", "if false then"}}, ""},
	{"the epoch is read and not locked", theLog, []edit{{"lease_check", "for update;", ";"}}, ""},
	{"a claim leaves the epoch", theLog, []edit{{"claim", "beat.lease_epoch + 1", "beat.lease_epoch"}}, ""},
	{"a claim does not ask for the lease", theLog, []edit{{"claim", "if beat.lease_until > clock_timestamp() and", "if false and"}}, ""},
	{"a rewind leaves the epoch", theLog, []edit{{"lease_end", "lease_epoch = lease_epoch + 1,", ""}}, ""},
	{"what was decided before a rewind is forgotten", theLog, []edit{{"read_outbox", "mark < c.decided_through::bigint", "false"}}, ""},
	{"a settle that comes twice settles twice", theLog, []edit{
		{"settle_refusal", "if at_.settles >= settle_no then", "if false then"},
		{"settle_refusal", "elsif settle_refusal.watermark <", "elsif false and settle_refusal.watermark <"},
	}, ""},
	{"the cursor moves with the read", theLog, []edit{{
		"pass_read", "decided := tidemark.decide_batch(pass_read.worker, read);",
		"decided := tidemark.decide_batch(pass_read.worker, read); update tidemark.worker_cursor c set watermark_id = read.watermark::text where c.worker = pass_read.worker;",
	}}, ""},

	{"sequence: a plain watermark", sequenceTable, []edit{{"source_numbers", "c.holes := c.holes - seen + (passed - seen);", "c.holes := '{}';"}}, ""},
	{"sequence: no fence", sequenceTable, []edit{{"fence_closed", "return not exists (", "return true or not exists ("}}, ""},
	{"sequence: the fence is noted before the read", sequenceTable, []edit{
		{"source_plan", "p.rows_limit := least(coalesce(", "perform set_config('machine.fence', tidemark.fence_now(tidemark.source_fence(p.source))::text, false); p.rows_limit := least(coalesce("},
		{"source_numbers", "tidemark.fence_now(tidemark.source_fence(plan.source)) end;", "current_setting('machine.fence')::text[] end;"},
	}, "if not careful then"},
	{"sequence: a full page of late rows drops the holes", sequenceTable, []edit{{"source_numbers", "plan.fence_closed and page.late < plan.rows_limit", "plan.fence_closed"}}, ""},
	{"sequence: no epoch", sequenceTable, []edit{{"lease_check", "if not found then", "if false then"}}, ""},
	{"sequence: the epoch is read and not locked", sequenceTable, []edit{{"lease_check", "for update;", ";"}}, ""},
	{"sequence: a rewind leaves the epoch", sequenceTable, []edit{{"lease_end", "lease_epoch = lease_epoch + 1,", ""}}, ""},
	{"capture: the fence is that of another table", captureTable, []edit{{"source_fence", "'tidemark.outbox'::regclass", "'tidemark.worker'::regclass"}}, ""},
	{"clock: no horizon", clockTable, []edit{{"source_horizon", "horizon := seen.oldest - margin;", "horizon := clock - margin;"}}, ""},
	{"clock: query_start is ignored", clockTable, []edit{
		{"oldest_transaction", "when a.state in ('active', 'fastpath function call') then a.query_start", "when false then a.query_start"},
	}, ""},
	{"clock: no rule for prepared transactions", clockTable, []edit{{"source_horizon", "l.pid is null and l.locktype", "false and l.locktype"}}, ""},
	{"clock: horizon and data in one statement", clockTable, []edit{
		{
			"source_next", "bound := tidemark.source_horizon(s, plan.relation, source_next.activity);",
			"select clock_timestamp() as horizon, null::text as held, null::text as hidden, null::text as blame into bound;",
		},
		{"source_query", "%3$s < ($3%7$s)%8$s", "%3$s < (select h.horizon from tidemark.source_horizon((select s from tidemark.source s where s.source = ''births''), ''public.births'') h)%8$s"},
	}, "perform pg_stat_clear_snapshot();"},
	{"declared: no sweep", declaredTable, []edit{{"source_query", "fresh := format('e.fits and e.xid >= $7", "fresh := format('e.fits and false and e.xid >= $7"}}, ""},
	{"declared: no ledger", declaredTable, []edit{{"source_query", "where l.worker_id = $11 and l.source", "where false and l.worker_id = $11 and l.source"}}, ""},
	{"declared: a sweep begins at its snapshot's xmax", declaredTable, []edit{{
		"source_plan", "'next_xmin', pg_snapshot_xmin(pg_current_snapshot())::text", "'next_xmin', pg_snapshot_xmax(pg_current_snapshot())::text",
	}}, ""},
	{"declared: a sweep notes its snapshot at its end", declaredTable, []edit{{
		"source_swept", "'xmin', plan.sweep ->> 'next_xmin'", "'xmin', pg_snapshot_xmin(pg_current_snapshot())::text",
	}}, ""},
	{"declared: a row's xmin for its transaction", declaredTable, []edit{
		{"source_plan", "'segment', 'null')", "'segment', 'null', 'next_snap', pg_current_snapshot()::text)"},
		{"source_swept", "'mark', plan.sweep ->> 'next_mark',", "'mark', plan.sweep ->> 'next_mark', 'snap', plan.sweep ->> 'next_snap',"},
		{
			"source_query", "fresh := format('e.fits and e.xid >= $7",
			"fresh := format('e.fits and not coalesce(pg_visible_in_snapshot(e.xid::text::xid8, (select c.sweep ->> ''snap'' from tidemark.worker_cursor c where c.worker = ''w'')::pg_snapshot), false)",
		},
	}, ""},
}

// soon are the mutants that the machine notices after some hundred steps, whatever the seed. make test hunts these: one
// that takes thousands would fail it by chance.
var soon = []string{
	"a plain watermark",
	"no fence",
	"sequence: a plain watermark",
	"sequence: a rewind leaves the epoch",
	"capture: the fence is that of another table",
	"clock: no horizon",
	"clock: query_start is ignored",
	"clock: no rule for prepared transactions",
	"clock: horizon and data in one statement",
	"declared: no sweep",
	"declared: no ledger",
	"strict order passes what is open",
}

// How many steps a hunt may take.
const (
	soonSteps  = 30_000
	everySteps = 1_000_000
)

func TestStateMachineCatches(t *testing.T) {
	t.Parallel()
	server := machineServer(t)
	for n, u := range unsound {
		limit := int64(everySteps)
		if !*everyMutant {
			// A third of them where time is short.
			if limit = soonSteps; !slices.Contains(soon, u.name) || testing.Short() && n%3 != 0 {
				continue
			}
		}
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, server, u.subject, u.edits...)
			if u.stop != "" {
				m.stops = slices.DeleteFunc(slices.Clone(m.stops), func(e edit) bool { return e.old != u.stop })
			}
			found := ""
			for found == "" && m.taken.Load() < limit && !t.Failed() {
				rapid.Check(t, func(rt *rapid.T) {
					if found == "" && m.taken.Load() < limit {
						found = m.play(rt)
					}
				})
			}
			if found == "" {
				t.Fatalf("not noticed in %d steps", m.taken.Load())
			}
			t.Logf("%s: noticed after %d steps: %s", u.name, m.taken.Load(), found)
		})
	}
}
