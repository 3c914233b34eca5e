package oracle_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/sql/test/internal/oracle"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// RO7: 100,000 generated cases, decided by SQL and by Go. TIDEMARK_SEED=n repeats a run.
func TestDecideAgreesWithSQL(t *testing.T) {
	t.Parallel()
	const batch = 1000
	cases := uint64(100_000)
	if testing.Short() {
		cases = 10_000
	}
	seed := seed(t)
	pool := tidemarktest.NewDB(t).Pool

	var mu sync.Mutex
	seen := map[string]int{}
	first := cases // the lowest case on which the two disagree
	starts := make(chan uint64)
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for start := range starts {
				counts, wrong := compare(t, pool, seed, start, batch)
				mu.Lock()
				for decision, n := range counts {
					seen[decision] += n
				}
				first = min(first, wrong)
				mu.Unlock()
			}
		})
	}
	for start := uint64(0); start < cases; start += batch {
		starts <- start
	}
	close(starts)
	wait.Wait()

	if first < cases {
		smallest := shrink(t, pool, generate(seed, first))
		t.Fatalf("case %d of TIDEMARK_SEED=%d; the smallest like it:\n%s", first, seed, show(t, pool, smallest))
	}
	t.Log(seen)
	for _, decision := range []string{
		"", "skipped no_route", "disabled -", "dry_run -", "dry_run transform_untried", "pending -", "pending domain_closed",
		"failed unknown_target_kind", "failed bad_retry_policy", "failed ambiguous_route",
		"skipped unknown_target_kind", "skipped bad_retry_policy", "skipped ambiguous_route",
	} {
		if seen[decision] < int(cases)/100 {
			t.Errorf("%q came up %d times in %d cases: too seldom to prove anything", decision, seen[decision], cases)
		}
		delete(seen, decision)
	}
	if len(seen) > 0 {
		t.Errorf("decisions that the contract does not know: %v", seen)
	}
}

func seed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("TIDEMARK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TIDEMARK_SEED: %v", err)
		}
	}
	t.Logf("TIDEMARK_SEED=%d", seed)
	return seed
}

// compare counts the decisions of a batch of cases, and returns the first case that Go and SQL decide
// differently (or a number past all).
func compare(t *testing.T, pool *pgxpool.Pool, seed, start, n uint64) (counts map[string]int, wrong uint64) {
	batch := make([]decideCase, n)
	for i := range batch {
		batch[i] = generate(seed, start+uint64(i))
	}
	counts = map[string]int{}
	bySQL, err := decideInSQL(t, pool, batch)
	if err != nil {
		t.Error(err)
		return counts, ^uint64(0)
	}
	for i, c := range batch {
		byGo := decideInGo(c)
		if byGo != bySQL[i] {
			return counts, start + uint64(i)
		}
		for decision := range strings.SplitSeq(byGo, ", ") {
			_, decision, _ = strings.Cut(decision, ": ")
			counts[decision]++
		}
	}
	return counts, ^uint64(0)
}

// Both write decisions as "7: failed ambiguous_route, 8: pending -", and none as nothing.
func decideInGo(c decideCase) string {
	var lines []string
	for _, d := range oracle.Decide(c.Worker, c.Event, c.Routes, c.Gates) {
		reason := d.Reason
		if reason == "" {
			reason = "-"
		}
		lines = append(lines, fmt.Sprintf("%d: %s %s", d.RouteID, d.Outcome, reason))
	}
	return strings.Join(lines, ", ")
}

func decideInSQL(t *testing.T, pool *pgxpool.Pool, batch []decideCase) ([]string, error) {
	text, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	rows, err := pool.Query(t.Context(), `
select coalesce(string_agg(format('%s: %s %s', d.route_id, d.outcome, coalesce(d.reason, '-')), ', ' order by d.n)
                filter (where d.route_id is not null), '')
from jsonb_array_elements($1::text::jsonb) with ordinality c (given, n)
left join lateral tidemark.decide(
    c.given ->> 'worker',
    jsonb_populate_record(null::tidemark.outbox, c.given -> 'event'),
    array(select r from jsonb_populate_recordset(null::tidemark.outbound_route, c.given -> 'routes') r),
    jsonb_populate_record(null::tidemark.gates, c.given -> 'gates')) with ordinality d (route_id, outcome, reason, n) on true
group by c.n order by c.n`, string(text))
	if err != nil {
		return nil, err
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(got) != len(batch) {
		err = fmt.Errorf("%d answers for %d cases", len(got), len(batch))
	}
	return got, err
}

// shrink takes from the case whatever it can without making the two agree.
func shrink(t *testing.T, pool *pgxpool.Pool, c decideCase) decideCase {
	for {
		simpler := simplifications(c)
		bySQL, err := decideInSQL(t, pool, simpler)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(simpler, func(c decideCase) bool {
			answer := bySQL[0]
			bySQL = bySQL[1:]
			return decideInGo(c) != answer
		})
		if i < 0 {
			return c
		}
		c = simpler[i]
	}
}

// simplifications are the cases that are simpler than c by one step.
func simplifications(c decideCase) []decideCase {
	var all []decideCase
	with := func(change func(*decideCase)) {
		simpler := c
		simpler.Routes = slices.Clone(c.Routes)
		change(&simpler)
		before, _ := json.Marshal(c)
		after, _ := json.Marshal(simpler)
		if string(before) != string(after) {
			all = append(all, simpler)
		}
	}
	with(func(c *decideCase) { c.Event.Payload = json.RawMessage(`{}`) })
	with(func(c *decideCase) { c.Event.Stream = nil })
	with(func(c *decideCase) { c.Event.Key = nil })
	with(func(c *decideCase) { c.Gates = open })
	for i := range c.Routes {
		with(func(c *decideCase) { c.Routes = slices.Delete(c.Routes, i, i+1) })
		for _, change := range []func(*oracle.Route){
			func(r *oracle.Route) { r.PayloadFilter = nil },
			func(r *oracle.Route) { r.RetryPolicy = nil },
			func(r *oracle.Route) { r.Stream = nil },
			func(r *oracle.Route) { r.KeyFilter = nil },
			func(r *oracle.Route) { r.Domain = "*" },
			func(r *oracle.Route) { r.Type = "*" },
			func(r *oracle.Route) { r.TargetKind = "sql" },
			func(r *oracle.Route) { r.Exclusive = false },
			func(r *oracle.Route) { r.Enabled = true },
			func(r *oracle.Route) { r.DryRun = false },
			func(r *oracle.Route) { r.FailClosed = true },
			func(r *oracle.Route) { r.Worker = "w1" },
		} {
			with(func(c *decideCase) { change(&c.Routes[i]) })
		}
	}
	return all
}

func show(t *testing.T, pool *pgxpool.Pool, c decideCase) string {
	bySQL, err := decideInSQL(t, pool, []decideCase{c})
	if err != nil {
		t.Fatal(err)
	}
	line := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := fmt.Sprintf("worker %s, gates %s\nevent %s\n", c.Worker, line(c.Gates), line(c.Event))
	for _, r := range c.Routes {
		text += fmt.Sprintf("route %s\n", line(r))
	}
	return text + fmt.Sprintf("SQL: %s\nGo:  %s", bySQL[0], decideInGo(c))
}
