package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const dryEvidence = `select concat_ws(' ', route_code, outcome, reason, string_agg(seq::text, ',' order by seq))
	from tidemark.route_attempt where route_code in ('each', 'batch') group by route_code, outcome, reason order by 1`

// RO12: a pass over a route in dry run does not call its transform, and whatever the transform does cannot hold it up. The evidence
// says so, until the transform was called: then it tells what would have become of the event. Nothing is delivered meanwhile.
func TestTransformInDryRun(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.shape()
	w.exec(`select tidemark.route_set('each', '{"dry_run": true}'), tidemark.route_set('batch', '{"dry_run": true, "transform": null}')`)
	w.exec(`insert into dropped values (3); insert into poison values (7), (12)`)
	w.emitUpTo(12)
	equal(t, "the pass", w.pass().Decided, map[string]int{"disabled": 12, "dry_run": 24})
	w.wantRows(dryEvidence, "batch dry_run 1,2,3,4,5,6,7,8,9,10,11,12", "each dry_run transform_untried 1,2,3,4,5,6,7,8,9,10,11,12")
	const why = `select substr(y.sentence, strpos(y.sentence, '.') + 1) from tidemark.outbox o cross join lateral tidemark.why(o.event_id, 'each') y where o.seq in (1, 3, 7) order by o.seq`
	untried := " Its transform was not called for the event yet, or takes longer than a dry run gives it."
	w.wantRows(why, untried, untried, untried)

	const try = `select concat_ws(' ', events, late) from tidemark.dry_run_transform('each', 5)`
	other := login(t, db, "executor", "tidemark_executor")
	other.exec(`begin`)
	other.wantRows(try, "5 f")
	w.wantRows(try, "0 f") // the other has them
	other.exec(`rollback`)
	w.wantRows(try, "5 f")
	w.wantRows(dryEvidence, "batch dry_run 1,2,3,4,5,6,7,8,9,10,11,12", "each dry_run 1,2,4,5", "each dry_run transform 3", "each dry_run transform_untried 6,7,8,9,10,11,12")
	w.wantRows(try, "5 f")
	w.emitUpTo(13) // the latest batch first
	w.pass()
	w.wantRows(`select events::text from tidemark.dry_run_transform('each')`, "13")
	w.wantRows(try, "2 f")
	w.wantRows(try, "0 f")
	w.wantRows(`select events::text from tidemark.dry_run_transform('batch')`, "0")
	want := []string{"each dry_run 1,2,4,5,6,8,9,10,11,13,14,16,17,18,20,21,22,23,25", "each dry_run transform 3,15", "each dry_run transform_failed 7,12,19,24"}
	w.wantRows(dryEvidence, append([]string{"batch dry_run 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25"}, want...)...)
	w.wantRows(`select detail from tidemark.event_evidence(7) where route_code = 'each'`, "public.shape: poison (P0001)")
	w.wantRows(why, "", " Its transform drops the event.", " Its transform fails: public.shape: poison (P0001).")
	w.exec(`set role tidemark_reader`)
	w.wantRows(`select detail from tidemark.event_evidence(7) where route_code = 'each'`, "the route's transform raised an error")
	w.exec(`reset role`)
	w.wantRows(`select n::text from got`)
	w.wantRows(allVerified)

	// What the dry run has told is what a replay of it comes to.
	w.exec(`select tidemark.route_set('each', '{"dry_run": false}')`)
	w.exec(`select tidemark.route_replay('each', from_seq => 1, outcomes => '{dry_run}', reason => 'test')`)
	for range 3 {
		w.pass()
	}
	w.wantRows(`select concat_ws(' ', a.outcome, a.reason, string_agg(a.seq::text, ',' order by a.seq)) from tidemark.route_attempt a
		where a.route_code = 'each' and a.attempt_no > 1 and a.outcome <> 'pending' group by a.outcome, a.reason order by 1`,
		"failed transform_failed 7,12,19,24", "sent 1,2,4,5,6,8,9,10,11,13,14,16,17,18,20,21,22,23,25", "skipped transform 3,15")
	w.wantRows(allVerified)

	for _, sql := range []string{`('each', 0)`, `('each', 5001)`, `('each', null)`} {
		w.refused("TM005", "most is", `select tidemark.dry_run_transform`+sql)
	}
	w.refused("TM004", "there is no route", `select tidemark.dry_run_transform('absent')`)
	login(t, db, "reader", "tidemark_reader").wantRefused("42501", `select tidemark.dry_run_transform('each')`)
}

// A transform that does not end is ended: of several events none is on record then, a single one has failed.
func TestTransformHangsInDryRun(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`create or replace function shape(payload jsonb) returns jsonb language plpgsql as $$
		begin while payload ->> 'n' = '1' loop null; end loop; assert payload ->> 'n' <> '2', 'two'; return payload; end $$;
		select tidemark.route_set('each', '{"dry_run": true, "timeout": "1s"}'), tidemark.route_set('batch', '{"enabled": false}');
		set statement_timeout = '1s'`)
	w.emitUpTo(3)
	w.pass()
	w.refused("57014", "timeout", `select tidemark.dry_run_transform('each')`)
	w.wantRows(`select concat_ws(' ', events, late) from tidemark.dry_run_transform('each', 1)`, "1 t")
	w.wantRows(`select concat_ws(' ', events, late) from tidemark.dry_run_transform('each')`, "2 f")
	w.wantRows(`select concat_ws(' ', seq, outcome, reason, detail) from tidemark.route_attempt where route_code = 'each' order by seq`,
		"1 dry_run transform_failed public.shape: it took longer than 1s", "2 dry_run transform_failed public.shape: two (P0004)", "3 dry_run")
	w.wantRows(allVerified)
}

// Where the route gives its transform more time than the call had, it is not known whether it fails: the event stays untried, and the
// others are tried.
func TestTransformSlowInDryRun(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`create or replace function shape(payload jsonb) returns jsonb language plpgsql as $$
		begin while payload ->> 'n' = '1' loop null; end loop; return payload; end $$;
		select tidemark.route_set('each', '{"dry_run": true, "timeout": "2s"}'), tidemark.route_set('batch', '{"enabled": false}');
		set statement_timeout = '1s'`)
	w.emitUpTo(2)
	w.pass()
	w.wantRows(`select concat_ws(' ', events, late) from tidemark.dry_run_transform('each', 1)`, "1 t")
	w.wantRows(`select concat_ws(' ', events, late) from tidemark.dry_run_transform('each')`, "1 f")
	w.wantRows(`select concat_ws(' ', events, late) from tidemark.dry_run_transform('each')`, "0 f")
	w.wantRows(`select concat_ws(' ', seq, outcome, reason, detail) from tidemark.route_attempt where route_code = 'each' order by seq`,
		"1 dry_run transform_untried", "2 dry_run")
	w.wantRows(allVerified)
}

// A transform is not called for an erased payload: what it makes of that says nothing about the event.
func TestTransformOfErasedInDryRun(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`select tidemark.route_set('each', '{"dry_run": true}'), tidemark.route_set('batch', '{"enabled": false}');
		create or replace function shape(payload jsonb) returns jsonb language plpgsql as $$
		begin assert payload ? 'n', 'no n'; return payload; end $$`)
	w.emitUpTo(2)
	w.exec(`select tidemark.emit_strict('test', 'tick', '{"n": 3, "erased": 1}')`)
	w.pass()
	w.exec(`update tidemark.outbox set payload = '{"erased": "2026-01-01"}' where seq = 1`)
	w.wantRows(`select concat_ws(' ', events, late) from tidemark.dry_run_transform('each')`, "3 f")
	w.wantRows(`select concat_ws(' ', seq, outcome, reason, detail) from tidemark.route_attempt where route_code = 'each' order by seq`,
		"1 dry_run event_missing", "2 dry_run", "3 dry_run")
	w.wantRows(`select substr(y.sentence, strpos(y.sentence, '.') + 1) from tidemark.outbox o cross join lateral tidemark.why(o.event_id, 'each') y where o.seq = 1`,
		" Its payload was gone before its transform was called.")
	w.wantRows(allVerified)
}

// A dead letter that is replayed while the route is in dry run tells it too, and is resolved.
func TestTransformOfLetterInDryRun(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`insert into poison values (1), (2), (3)`)
	w.emitUpTo(3)
	w.pass()
	w.exec(`delete from poison where n < 3; insert into dropped values (1); select tidemark.route_set('each', '{"dry_run": true}')`)
	const replay = `select concat_ws(' ', (r).outcome, (r).reason, (r).detail) from (select tidemark.dead_letter_replay(l.id, $1) r
		from tidemark.dead_letter l join tidemark.outbound_route o on o.id = l.route_id where o.route_code = 'each' order by l.seq offset 0) r`
	for _, dry := range []bool{true, false} {
		equal(t, "replay", column[string](w, replay, dry), []string{"dry_run transform", "dry_run", "dry_run transform_failed public.shape: poison (P0001)"})
	}
	w.wantRows(`select distinct concat_ws(' ', l.resolution) from tidemark.dead_letter l join tidemark.outbound_route o on o.id = l.route_id where o.route_code = 'each'`, "dry_run")
	w.wantRows(allVerified)
}
