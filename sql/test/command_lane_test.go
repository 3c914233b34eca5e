package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CM6: the records of one ordering key reach two partitions, and both park the first one at once: while their command is off, and behind
// one that a retry is just releasing. One is due, the other waits behind it, and each runs once.
func TestCommandLaneBegunTwice(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, 5)
	p.exec(`create table app.effect (n bigint generated always as identity, key text); grant all on app.effect to "tidemark_service_` + p.name + `";
		create function app.note(payload jsonb, context jsonb) returns void language plpgsql as $$ begin insert into effect (key) values (context ->> 'idempotency_key'); end $$`)
	p.command("off", `{"function": "app.note"}`)
	first, second := open(t, db, "first"), open(t, db, "second")
	pass := func(s session, partition int, key string) func() (json.RawMessage, error) {
		return later[json.RawMessage](s, `select tidemark.command_passes($1::jsonb, '1 minute') -> 0 -> 'result'`,
			"["+p.page(partition, 0, p.of(p.service, "off", partition, 0, key, `{"id": 1}`, `{"key": "lane"}`))+"]")
	}
	parks := func(passed func() (json.RawMessage, error)) {
		t.Helper()
		if got, err := passed(); err != nil || string(got) != `{"failed_retryable": 1}` {
			t.Fatalf("%s %v", got, err)
		}
	}
	const heads = `select count(*)::text from tidemark.command_parked where next_attempt_at < 'infinity'`

	first.begin()
	second.begin()
	parks(pass(first, 0, "a"))
	passed := pass(second, 1, "b")
	p.waitsFor(second)
	first.commit()
	parks(passed)
	second.commit()
	p.wantRows(heads, "1")
	p.command("off", `{"enabled": true, "dry_run": false}`)
	p.wantRows(retryBatch, "a processed", "b processed")
	p.wantRows(`select key from app.effect order by n`, "a", "b")

	p.command("off", `{"enabled": false}`)
	parks(pass(p.session, 2, "c"))
	p.command("off", `{"enabled": true}`)
	p.begin()
	p.wantRows(retryBatch, "c processed")
	passed = pass(first, 3, "d")
	p.waitsFor(first)
	others := pass(second, 4, "e")
	p.waitsFor(second)
	p.commit()
	parks(passed)
	parks(others)
	p.wantRows(heads, "1")
	p.wantRows(`select count(*)::text from (`+retryBatch+`) r`, "2")
	p.wantRows(`select key || ' ' || count(*) from app.effect group by key order by key`, "a 1", "b 1", "c 1", "d 1", "e 1")
	p.wantRows(`select count(*)::text from tidemark.outbox where payload ->> 'status' = 'processed'`, "5")
	p.wantRows(`select idempotency_key from tidemark.command_parked`)
}

// command_batch refuses a parked command that the caller gives twice.
func TestCommandRetriedTwiceInABatch(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.lanes("k1")
	s.refused("TM005", "twice in one batch", `select tidemark.command_retry_batch(array[$1, $1], '{k11,k11}', 50)`, s.name)
	s.wantInvoices()
	s.wantRows(retryBatch, "k11 processed")
}

// A claim is kept for the retention of its command from when that is done, however long it was parked.
func TestClaimOutlivesParking(t *testing.T) {
	t.Parallel()
	s := serve(t, tidemarktest.NewDB(t))
	s.lanes("k1", "k2", "k3", "k4")
	s.exec(`insert into app.invoice values (13, 1)`)
	s.behind("k1", "2")
	// As if all that were long ago.
	s.exec(`update tidemark.command_claim set expires_at = now() - interval '1 s'`)
	s.exec(`select tidemark.command_discard($1, 'k41', 'asks for too much')`, s.name)
	s.wantRows(retryBatch, "k11 processed", "k12 processed", "k21 processed")
	s.wantRows(retryBatch, "k31 failed_terminal sql.constraint")
	s.exec(`select * from tidemark.maintain()`)
	s.wantRows(`select idempotency_key || ' ' || state || ' ' || (expires_at - processed_at between interval '30 days' and interval '30 days 1 minute') from tidemark.command_claim order by 1`,
		"k11 processed true", "k12 processed true", "k21 processed true", "k31 failed_terminal true", "k41 failed_terminal true")
	s.exec(`delete from app.invoice`) // so that a second effect would be there
	s.wantRun("duplicate", "k12", `{"id": 21}`)
	s.wantInvoices()
}

// CM6: partitions pass commands of the same ordering keys at once, while their command is switched off and on, and what is parked is
// retried: each runs once, those of a partition and a key in their order, and none is forgotten.
func TestCommandLanesAtOnce(t *testing.T) {
	t.Parallel()
	const parts, records = 3, 60
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, parts)
	p.exec(`create table app.effect (n bigint generated always as identity, key text); grant all on app.effect to "tidemark_service_` + p.name + `";
		create function app.note(payload jsonb, context jsonb) returns void language plpgsql as $$ begin insert into effect (key) values (context ->> 'idempotency_key'); end $$`)
	p.command("off", `{"function": "app.note"}`)
	p.command("off", `{"enabled": true, "dry_run": false}`)
	// What another session is in the way of is tried again.
	transient := func(err error) bool {
		return slices.Contains([]string{"40P01", "55P03", "TM009"}, code(err))
	}
	var passing sync.WaitGroup
	failed := make(chan error, parts+1)
	for n := range parts {
		s := open(t, db, fmt.Sprint("passes", n))
		var calls []string
		for i := range int64(records) {
			key := fmt.Sprintf("%s %d %02d", []string{"x", "y"}[(int(i)/2+n)%2], n, i)
			calls = append(calls, p.of(p.service, "off", n, i, key, `{"id": 1}`, fmt.Sprintf(`{"key": %q}`, key[:1])))
		}
		passing.Go(func() {
			for from := 0; from < records; {
				var next int
				err := s.conn.QueryRow(t.Context(), `select (tidemark.command_passes($1::jsonb, '1 minute') -> 0 ->> 'next')::int`,
					"["+p.page(n, int64(from), calls[from:min(from+1+from%12, records)]...)+"]").Scan(&next)
				if err == nil {
					from = next
				} else if !transient(err) {
					failed <- fmt.Errorf("partition %d at %d: %w", n, from, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	retries := open(t, db, "retries")
	var retrying sync.WaitGroup
	retrying.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := retries.conn.Exec(t.Context(), retryBatch); err != nil && !transient(err) {
				failed <- fmt.Errorf("retries: %w", err)
				return
			}
		}
	})
	go func() { passing.Wait(); close(done) }()
	for on := false; ; on = !on {
		p.command("off", fmt.Sprintf(`{"enabled": %t}`, on))
		select {
		case <-done:
		default:
			continue
		}
		break
	}
	retrying.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	p.command("off", `{"enabled": true}`)
	for range parts * records {
		p.exec(retryBatch)
	}
	p.wantRows(`select idempotency_key from tidemark.command_parked`)
	p.wantRows(`select count(*) || ' ' || count(distinct key) from app.effect`, fmt.Sprint(parts*records, " ", parts*records))
	p.wantRows(`select key from (select key, lag(key) over (partition by left(key, 3) order by n) as before from app.effect) e where before > key`)
	p.wantRows(`select count(*)::text from tidemark.outbox where payload ->> 'status' = 'processed'`, fmt.Sprint(parts*records))
}
