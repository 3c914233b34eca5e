package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

// Outcome is what became of an event on a route, as tidemark.outcome names it.
type Outcome string

// The outcomes that a delivery can have.
const (
	Sent    Outcome = "sent"
	Failed  Outcome = "failed"
	Pending Outcome = "pending"
	Skipped Outcome = "skipped"
)

// Result is what a delivery outside the database came to.
type Result struct {
	Route   int32
	Seq     int64
	Fresh   bool // of the page that is settled; otherwise it was pending
	Outcome Outcome
	Reason  string // word of a closed set; empty: the outcome says it all
	Detail  string // what happened; empty with Pending: it was not tried
	// Delay is when a pending one is due; Behind: when the one before it of its key is done.
	Delay  time.Duration
	Behind bool
}

const settleStatement = `select coalesce(tidemark.settle(` + settling + `, 0, $12, $13) ->> 'status', '')`

// settleInside also delivers inside the database.
const settleInside = `select coalesce(tidemark.pass_settle(` + settling + `, $12, $13) ->> 'status', '')`

const settleHandled = `select tidemark.settle_handled(` + settling + `, $12, $13, $14)`

// settling are the first arguments of a settle, of what settleArguments returns.
const settling = `$1, $2, $3::text::tidemark.batch, coalesce($4::text::tidemark.evidence[], '{}'), array(
	select row(r.route_id, r.fresh, r.outcome::tidemark.outcome, nullif(r.reason, ''), nullif(r.detail, ''), r.seqs::int8multirange, r.delay)::tidemark.result
	from unnest($5::integer[], $6::boolean[], $7::text[], $8::text[], $9::text[], $10::text[], $11::float8[])
	     r (route_id, fresh, outcome, reason, detail, seqs, delay))`

// ErrSettled says that the settle had been recorded before: its answer was lost.
var ErrSettled = errors.New("settled already")

// ErrHeld says that the cursor is not where the page began: it was moved by hand. Nothing was recorded.
var ErrHeld = errors.New("held: the cursor was moved by hand")

// Settle settles the page, and what else came to an end; page nil: only the latter. db is the cursor's own or a transaction. Until it
// succeeds, or gives ErrSettled, a call is the same settle again. What became due inside the database after the page was read is
// for the next one: nothing here waits as long as that may take.
func (c *Cursor) Settle(ctx context.Context, db Querier, page *Page, results []Result) error {
	if db == nil {
		db = c.db
	}
	var status string
	var err error
	arguments := c.settleArguments(page, results)
	if page != nil && page.Inside > 0 {
		err = within(ctx, db, page.Inside, &status, settleInside, arguments...)
	} else {
		err = db.QueryRow(ctx, settleStatement, arguments...).Scan(&status)
	}
	return cmp.Or(err, settleRefusal(status))
}

func (c *Cursor) settleArguments(page *Page, results []Result) []any {
	var batch, evidence *string
	if page != nil {
		batch, evidence = &page.batch, &page.evidence
	}
	g := group(results)
	return []any{
		c.worker, c.epoch, batch, evidence,
		g.routes, g.fresh, g.outcomes, g.reasons, g.details, g.seqs, g.delays, c.settles + 1, c.shard,
	}
}

// settleRefusal is why nothing was recorded, by the status of a settle; nil: it was.
func settleRefusal(status string) error {
	switch status {
	case "settled already":
		return ErrSettled
	case "held":
		return ErrHeld
	}
	return nil
}

// Settled notes that the latest settle is recorded, committed.
func (c *Cursor) Settled(page *Page) {
	c.settles++
	if page != nil {
		c.settled, c.lowest = page.place, page.lowest
	}
}

// Moves reports whether settling the page would change the cursor.
func (c *Cursor) Moves(page *Page) bool {
	return page.Events > 0 || page.place != c.settled
}

// grouped are the columns of an unnest: results that differ in nothing but the number
// are one row, with a multirange.
type grouped struct {
	routes                           []int32
	fresh                            []bool
	outcomes, reasons, details, seqs []string
	delays                           []*float64
}

func group(results []Result) grouped {
	numbers := map[Result][]int64{} // by what the results have in common
	for _, r := range results {
		seq := r.Seq
		r.Seq = 0
		numbers[r] = append(numbers[r], seq)
	}
	var g grouped
	for r, seqs := range numbers {
		slices.Sort(seqs)
		g.routes = append(g.routes, r.Route)
		g.fresh = append(g.fresh, r.Fresh)
		g.outcomes = append(g.outcomes, string(r.Outcome))
		g.reasons = append(g.reasons, r.Reason)
		g.details = append(g.details, r.Detail)
		g.seqs = append(g.seqs, multirange(seqs))
		var delay *float64
		if !r.Behind {
			seconds := r.Delay.Seconds()
			delay = &seconds
		}
		g.delays = append(g.delays, delay)
	}
	return g
}

// multirange is the text of an int8multirange with the numbers, which are in rising order.
func multirange(seqs []int64) string {
	text := []byte{'{'}
	for from := 0; from < len(seqs); {
		to := from + 1
		for to < len(seqs) && seqs[to] <= seqs[to-1]+1 {
			to++
		}
		if from > 0 {
			text = append(text, ',')
		}
		text = append(text, '[')
		text = strconv.AppendInt(text, seqs[from], 10)
		text = append(text, ',')
		text = strconv.AppendInt(text, seqs[to-1]+1, 10)
		text = append(text, ')')
		from = to
	}
	return string(append(text, '}'))
}
