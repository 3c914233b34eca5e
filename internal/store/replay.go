package store

import (
	"context"
	"encoding/json"
	"time"
)

// ReplayAsk is what to send again on a route. One of Since and FromSeq is needed; the zero
// value of another field chooses all.
type ReplayAsk struct {
	Route          string
	Since, Until   time.Time
	FromSeq, ToSeq *int64
	Key            string
	Outcomes       []string
	Rate           float64 // events per second at most; 0: as many as the route takes
	DryRun         bool
	Reason         string
}

// ReplayCount is what a replay does with the events that came to the same.
type ReplayCount struct {
	Former  *string `db:"former" json:"former"`     // their latest outcome on the route
	LeftOut *string `db:"left_out" json:"left_out"` // why they do not go; null: they go
	Events  int64   `db:"events" json:"events"`
}

// Counted is what a replay does in all.
type Counted struct {
	Replay   *int64        `json:"replay" doc:"Its number; null: a dry run, or there are no events."`
	FirstSeq int64         `json:"first_seq"`
	LastSeq  int64         `json:"last_seq"`
	Events   int64         `json:"events" doc:"That go."`
	Complete bool          `json:"complete" doc:"false: there are more than were counted."`
	Counts   []ReplayCount `json:"counts"`
}

// RouteReplay calls tidemark.route_replay.
func (db *DB) RouteReplay(ctx context.Context, a ReplayAsk) (c Counted, err error) {
	type row struct {
		ReplayCount
		ID       *int64 `db:"id"`
		FirstSeq int64  `db:"first_seq"`
		LastSeq  int64  `db:"last_seq"`
		Complete bool   `db:"complete"`
	}
	rows, err := list[row](ctx, db, `select id, first_seq, last_seq, former, left_out, events, complete from tidemark.route_replay(
			$1, nullif($2, ''), since => $3, until => $4, from_seq => $5, to_seq => $6, key => nullif($7, ''),
			outcomes => $8, rate => nullif($9::float8, 0), dry_run => $10)`,
		a.Route, a.Reason, instant(a.Since), instant(a.Until), a.FromSeq, a.ToSeq, a.Key, a.Outcomes, a.Rate, a.DryRun)
	if err != nil {
		return c, err
	}
	sum := rows[len(rows)-1] // of those that go
	c = Counted{sum.ID, sum.FirstSeq, sum.LastSeq, sum.Events, sum.Complete, []ReplayCount{}}
	for _, r := range rows[:len(rows)-1] {
		c.Counts = append(c.Counts, r.ReplayCount)
	}
	return c, nil
}

// RouteReplayed is a replay on a route, and how far it has come.
type RouteReplayed struct {
	ID          int64           `db:"id" json:"id"`
	RouteCode   string          `db:"route_code" json:"route_code"`
	Worker      string          `db:"worker" json:"worker"`
	State       string          `db:"state" json:"state"` // running, waiting, finished or cancelled
	WaitsFor    *string         `db:"waits_for" json:"waits_for"`
	FirstSeq    int64           `db:"first_seq" json:"first_seq"`
	LastSeq     int64           `db:"last_seq" json:"last_seq"`
	PassedSeq   int64           `db:"passed_seq" json:"passed_seq"`
	Key         *string         `db:"key" json:"key"`
	Outcomes    []string        `db:"outcomes" json:"outcomes"`
	Rate        *float64        `db:"rate" json:"rate"`
	Events      *int64          `db:"events" json:"events"` // that go; nil: more than were counted, or its end was open
	Staged      int64           `db:"staged" json:"staged"`
	Sent        int64           `db:"sent" json:"sent"`
	Failed      int64           `db:"failed" json:"failed"`
	LeftOut     json.RawMessage `db:"left_out" json:"left_out"`
	RequestedAt time.Time       `db:"requested_at" json:"requested_at"`
	RequestedBy string          `db:"requested_by" json:"requested_by"`
	Reason      string          `db:"reason" json:"reason"`
	FinishedAt  *time.Time      `db:"finished_at" json:"finished_at"`
}

// ReplayFilter chooses replays. Zero values: all.
type ReplayFilter struct {
	Route  string
	Open   bool  // those that are not over
	Before int64 // below this number
	Limit  int
}

// RouteReplays returns the replays of a filter, the latest first.
func (db *DB) RouteReplays(ctx context.Context, f ReplayFilter) ([]RouteReplayed, error) {
	return list[RouteReplayed](ctx, db, `select * from tidemark.replay_summary s
		where ($1 = '' or s.route_code = $1) and (not $2 or s.finished_at is null) and ($3::bigint = 0 or s.id < $3)
		order by s.id desc limit nullif($4::integer, 0)`, f.Route, f.Open, f.Before, f.Limit)
}

// ReplayCancel calls tidemark.replay_cancel, and returns how many events are staged already.
func (db *DB) ReplayCancel(ctx context.Context, id int64, reason string) (staged int64, err error) {
	return value[int64](ctx, db, `select tidemark.replay_cancel($1, $2)`, id, reason)
}
