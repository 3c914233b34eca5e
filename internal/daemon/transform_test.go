package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// payloads are the payloads that arrived, in their order.
func (r *receiver) payloads(t *testing.T) (all []string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.body {
		all = append(all, payloadOf(t, body))
	}
	return all
}

func payloadOf(t *testing.T, body string) string {
	t.Helper()
	var event struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		t.Fatal(err)
	}
	return string(event.Data)
}

// shape is the transform of these tests: what it does with a number is in a table.
const shape = `
create table special (n int primary key, how text not null);
create function shape(p jsonb) returns jsonb language plpgsql as $$
declare
    special text := (select s.how from special s where s.n = (p ->> 'n')::int);
begin
    case special
        when 'drop' then return null;
        when 'fail' then raise exception 'no good %', p;
        when 'hang' then perform pg_sleep(3600);
        when 'write' then insert into special values (0, 'x');
        else null;
    end case;
    return p || '{"secret": "plugh"}';
end $$;
select tidemark.route_set('app', '{"transform": "public.shape", "columns": ["n", "made"], "timeout": "3s",
    "retry_policy": {"base_seconds": 0.01, "max_seconds": 0.5, "max_attempts": 100}}')`

func emitNumbers(t *testing.T, db *tidemarktest.DB, n int) {
	t.Helper()
	execSQL(t, db, `select tidemark.emit('test', 'tick', jsonb_build_object('n', n, 'rest', 'x'), key => 'k' || n % 10) from generate_series(1, $1::int) n`, n)
}

func query(t *testing.T, db *tidemarktest.DB, sql string) (got string) {
	t.Helper()
	if err := db.Pool.QueryRow(context.Background(), `select coalesce(string_agg(r::text, '; '), '') from (`+sql+`) q (r)`).Scan(&got); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

const badOnes = `select concat_ws(' ', seq, outcome, reason) from tidemark.route_attempt where outcome in ('skipped', 'failed') order by seq`

// RO12: a webhook gets what the transform and the columns make of an event, and no event that it drops. One at which the
// transform fails, hangs or writes holds up its key alone, and is delivered when the function is mended.
func TestTransformToWebhook(t *testing.T) {
	t.Parallel()
	db, r := tidemarktest.NewDB(t), newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, shape)
	execSQL(t, db, `insert into special values (3, 'drop'), (14, 'fail'), (25, 'hang'), (36, 'write')`)
	execSQL(t, db, `select tidemark.route_set('app', '{"ordering": "key"}')`)
	emitNumbers(t, db, 100)
	p := run(t, settings(db))
	// Of the keys k4, k5 and k6 what is behind 14, 25 and 36 waits: 8, 7 and 6 events.
	eventually(t, "the others arrive", func() bool { return r.count() == 100-1-3-8-7-6 })
	eventually(t, "they are tried again", func() bool {
		return query(t, db, `select count(*) from tidemark.pending where error_count > 0 and last_error like 'transform_failed: public.shape: %'`) == "3"
	})
	if got := query(t, db, `select last_error from tidemark.pending where seq in (14, 25, 36) order by seq`); got != `transform_failed: public.shape: no good {"n": 14, "rest": "x"} (P0001); `+
		`transform_failed: public.shape: canceling statement due to statement timeout (57014); transform_failed: public.shape: cannot execute INSERT in a read-only transaction (25006)` {
		t.Error(got)
	}
	execSQL(t, db, `update special set how = 'drop' where n = 36; delete from special where n in (14, 25)`)
	eventually(t, "all arrive", func() bool { return r.count() == 98 && query(t, db, `select count(*) from tidemark.pending`) == "0" })
	if got := query(t, db, badOnes); got != "3 skipped transform; 36 skipped transform" {
		t.Error(got)
	}
	byKey := map[int][]int{}
	for _, payload := range r.payloads(t) {
		var n int
		if _, err := fmt.Sscanf(payload, `{"n": %d}`, &n); err != nil || payload != fmt.Sprintf(`{"n": %d}`, n) {
			t.Error(payload)
		}
		byKey[n%10] = append(byKey[n%10], n)
	}
	for key, numbers := range byKey {
		if !slices.IsSorted(numbers) {
			t.Errorf("key %d: %v", key, numbers)
		}
	}
	if got := query(t, db, `select "check" || detail from tidemark.verify() where status = 'fail'`); got != "" {
		t.Error(got)
	}
	// It was not the target.
	if got := query(t, db, `select kind from tidemark.finding where kind = 'target_down'`); got != "" {
		t.Error(got)
	}
	p.stop()
}

// The records of a batch are transformed at once. What fails or hangs among them is found, and holds up what is behind it of its
// key, not what is before.
func TestTransformToKafka(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "ticks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	live(t, db, "http://127.0.0.1:1/")
	execSQL(t, db, shape)
	execSQL(t, db, `select tidemark.route_set('app', '{"target_kind": "kafka", "target_ref": "ticks", "options": {"format": "payload"}, "ordering": "key"}')`)
	execSQL(t, db, `insert into special values (3, 'drop'), (14, 'fail'), (25, 'hang'), (99, 'drop')`)
	emitNumbers(t, db, 100)
	c := settings(db)
	c.Connections = map[string]config.Connection{"main": {Kind: "kafka", Brokers: cluster.ListenAddrs()}}
	run(t, c)
	reader, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("ticks"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	byKey, got := map[int][]int{}, 0
	read := func(n int) {
		t.Helper()
		for ; got < n; got = len(slices.Concat(slices.Collect(maps.Values(byKey))...)) {
			fetches := reader.PollFetches(ctx)
			if ctx.Err() != nil {
				t.Fatalf("%d records arrive, want %d", got, n)
			}
			for _, record := range fetches.Records() {
				var n int
				if _, err := fmt.Sscanf(string(record.Value), `{"n": %d}`, &n); err != nil || string(record.Value) != fmt.Sprintf(`{"n": %d}`, n) {
					t.Errorf("%s", record.Value)
				}
				byKey[n%10] = append(byKey[n%10], n)
			}
		}
	}
	// Of the keys k4 and k5 what is behind 14 and 25 waits: 8 and 7 events.
	read(100 - 4 - 8 - 7)
	eventually(t, "they are tried again", func() bool {
		return query(t, db, `select seq from tidemark.pending where error_count > 0 and last_error like 'transform_failed: public.shape: %' order by seq`) == "14; 25"
	})
	// Their page may have gone on without some that have arrived since.
	eventually(t, "seventeen wait", func() bool { return query(t, db, `select count(*) from tidemark.pending`) == "17" })
	execSQL(t, db, `update special set how = 'drop' where n = 14; delete from special where n = 25`)
	read(97)
	for key, numbers := range byKey {
		if !slices.IsSorted(numbers) || len(slices.Compact(numbers)) < 9 {
			t.Errorf("key %d: %v", key, numbers)
		}
	}
	eventually(t, "evidence", func() bool {
		return query(t, db, badOnes) == "3 skipped transform; 14 skipped transform; 99 skipped transform"
	})

	// An event that is given up is a dead letter, which a replay settles by the transform as it is then.
	execSQL(t, db, `select tidemark.route_set('app', '{"retry_policy": {"max_attempts": 1}}')`)
	execSQL(t, db, `insert into special values (101, 'fail')`)
	execSQL(t, db, `select tidemark.emit('test', 'tick', '{"n": 101}')`)
	eventually(t, "the letter", func() bool {
		return query(t, db, `select error_detail from tidemark.dead_letter`) == `public.shape: no good {"n": 101} (P0001) (given up after 1 attempts)`
	})
	execSQL(t, db, `update special set how = 'drop' where n = 101`)
	execSQL(t, db, `select tidemark.dead_letter_replay(id) from tidemark.dead_letter`)
	eventually(t, "the letter is resolved", func() bool { return query(t, db, `select resolution from tidemark.dead_letter`) == "skipped" })
	if got := query(t, db, `select "check" || detail from tidemark.verify() where status = 'fail'`); got != "" {
		t.Error(got)
	}
}

// The transform is changed all the time, from one that is well to one that drops or fails: each event arrives once, as some
// version of the route makes it, or is recorded as dropped, and those of a key in order.
func TestTransformChangesMeanwhile(t *testing.T) {
	t.Parallel()
	db, r := tidemarktest.NewDB(t), newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, shape)
	execSQL(t, db, `create function a(p jsonb) returns jsonb language sql as $$ select p || '{"made": "a"}' $$;
		create function b(p jsonb) returns jsonb language sql as $$ select p || '{"made": "b"}' where (p ->> 'n')::int % 7 > 0 $$;
		create function c(p jsonb) returns jsonb language sql as $$ select p || jsonb_build_object('made', 1 / ((p ->> 'n')::int % 5)) $$;
		select tidemark.route_set('app', '{"ordering": "key", "timeout": "30s"}')`)
	run(t, settings(db))
	const all = 600
	for n := range 60 {
		execSQL(t, db, `select tidemark.emit('test', 'tick', jsonb_build_object('n', n), key => 'k' || n % 10) from generate_series($1::int * 10 + 1, $1::int * 10 + 10) n`, n)
		execSQL(t, db, `select tidemark.route_set('app', $1::jsonb)`, []string{
			`{"transform": "public.a"}`, `{"transform": "public.b"}`, `{"transform": "public.c"}`, `{"transform": null}`, `{"columns": ["n"]}`, `{"columns": null}`,
		}[rand.IntN(6)])
	}
	execSQL(t, db, `select tidemark.route_set('app', '{"transform": "public.a"}')`)
	eventually(t, "all are done", func() bool {
		return query(t, db, `select count(*) from tidemark.pending`) == "0" && query(t, db, `select count(distinct seq) from tidemark.route_attempt`) == fmt.Sprint(all)
	})
	last, seen := map[int]int{}, map[int]bool{}
	for _, payload := range r.payloads(t) {
		var p struct{ N int }
		if err := json.Unmarshal([]byte(payload), &p); err != nil || strings.Contains(payload, "plugh") {
			t.Fatal(payload, err)
		}
		if seen[p.N] || last[p.N%10] > p.N {
			t.Errorf("%d arrives after %d of its key, or twice", p.N, last[p.N%10])
		}
		seen[p.N], last[p.N%10] = true, p.N
	}
	dropped := query(t, db, `select count(*) from tidemark.route_attempt where outcome = 'skipped' and reason = 'transform'`)
	if got := fmt.Sprint(all - len(seen)); got != dropped {
		t.Errorf("%s did not arrive, and %s were dropped", got, dropped)
	}
	if got := query(t, db, `select "check" || detail from tidemark.verify() where status = 'fail'`); got != "" {
		t.Error(got)
	}
}

// A route in dry run whose transform hangs or fails: its evidence tells, what the others deliver arrives, and its own pages are settled.
func TestTransformOfDryRuns(t *testing.T) {
	t.Parallel()
	db, r := tidemarktest.NewDB(t), newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, shape)
	execSQL(t, db, `insert into special values (3, 'drop'), (14, 'fail'), (100, 'hang')`)
	execSQL(t, db, `select tidemark.route_set('app', '{"transform": null, "columns": null}'), tidemark.route_set('dry', '{"domain": "test", "target_kind": "stdout", "target_ref": "x", "enabled": true, "dry_run": true, "transform": "public.shape", "timeout": "1s"}')`)
	emitNumbers(t, db, 100)
	p := run(t, settings(db))
	eventually(t, "the live route delivers", func() bool { return r.count() == 100 })
	const told = `select concat_ws(' ', outcome, reason, count(*), min(seq), max(detail)) from tidemark.route_attempt where route_code = 'dry' group by outcome, reason order by 1`
	want := "dry_run 97 1; dry_run transform 1 3; dry_run transform_failed 2 14 public.shape: no good " + `{"n": 14, "rest": "x"} (P0001)`
	eventually(t, "the evidence tells", func() bool { return query(t, db, told) == want })
	if got := query(t, db, `select detail from tidemark.route_attempt where route_code = 'dry' and seq = 100`); got != "public.shape: it took longer than 1s" {
		t.Error(got)
	}
	if got := query(t, db, `select "check" || detail from tidemark.verify() where status = 'fail'`); got != "" {
		t.Error(got)
	}
	p.stop()
	if strings.Contains(p.log.String(), "cannot try the transform") {
		t.Error(p.log)
	}
}

// A call of a transform for a dry run lasts 5 seconds at most, whatever the route's timeout is: sources of safety clock wait for it.
func TestTransformOfDryRunIsCutShort(t *testing.T) {
	t.Parallel()
	db, r := tidemarktest.NewDB(t), newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, shape)
	execSQL(t, db, `insert into special values (1, 'hang')`)
	execSQL(t, db, `select tidemark.route_set('app', '{"transform": null, "columns": null}'), tidemark.route_set('dry', '{"domain": "test", "target_kind": "stdout", "target_ref": "x", "enabled": true, "dry_run": true, "transform": "public.shape", "timeout": "1 day"}')`)
	emitNumbers(t, db, 1)
	p := run(t, settings(db))
	eventually(t, "the call ends", func() bool {
		return query(t, db, `select concat_ws(' ', a.outcome, a.reason, a.detail) from tidemark.attempt a join tidemark.outbound_route r on r.id = a.route_id where r.route_code = 'dry'`) == "dry_run transform_untried"
	})
	p.stop()
}
