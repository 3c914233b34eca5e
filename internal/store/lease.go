package store

import (
	"context"
	"time"
)

// A lease is a worker's right to the cursor of a source, from Claim to Release.
type lease struct {
	db     Querier
	worker string
	source string
	shard  int
	owner  string // one instance of one process
	lasts  time.Duration
	epoch  int64
	held   bool // as far as this process knows
}

// Lease is how long the lease runs from a claim, a beat, or a pass over a table.
func (l *lease) Lease() time.Duration { return l.lasts }

// Epoch is that of the lease; it rises with every claim.
func (l *lease) Epoch() int64 { return l.epoch }

// Sleeper names the cursor for a poll that asks for many at once.
func (l *lease) Sleeper(epoch int64) Sleeper {
	return Sleeper{Worker: l.worker, Source: l.source, Shard: l.shard, Epoch: epoch}
}

// Claim is the answer to a claim.
type Claim struct {
	Status string // claimed, closed, held or busy
	Detail string // closed: the gate. held: why. busy: which instance has it

	settles int64 // of the log: how many came before
}

// Claim calls tidemark.claim.
func (l *lease) Claim(ctx context.Context) (Claim, error) {
	var got Claim
	var epoch int64
	l.held = false
	err := l.db.QueryRow(ctx, `select status, coalesce(detail, ''), coalesce(epoch, 0), coalesce(settles, 0)
		from tidemark.claim($1, $2, $3::float8 * interval '1 second', $4, $5)`, l.worker, l.owner, l.lasts.Seconds(), l.source, l.shard).
		Scan(&got.Status, &got.Detail, &epoch, &got.settles)
	if err != nil {
		return Claim{}, err
	}
	if got.Status == "claimed" {
		l.epoch, l.held = epoch, true
	}
	return got, nil
}

// Release calls tidemark.release. It retries up to five times: nothing else retries a release, and several idle connections
// may be broken without having reported it.
func (l *lease) Release(ctx context.Context) (err error) {
	for range 5 {
		if _, err = l.db.Exec(ctx, `select tidemark.release($1, $2, $3, $4)`, l.worker, l.epoch, l.source, l.shard); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

// Conflict reports, by tidemark.worker_finding, that this instance was fenced.
func (l *lease) Conflict(ctx context.Context) error {
	_, err := l.db.Exec(ctx, `select tidemark.worker_finding($1, 'cursor_lease_conflict', tidemark.executor_id($1, $2, $3),
		'an instance was fenced: two own the cursor, or one was paused past its lease, or it was rewound')`, l.worker, l.source, l.shard)
	return err
}

// Failing reports, by tidemark.worker_finding, what fails again and again, and what the error said; empty: nothing does.
func (l *lease) Failing(ctx context.Context, detail, message string) error {
	_, err := l.db.Exec(ctx, `select tidemark.worker_finding($1, 'worker_failing', tidemark.executor_id($1, $2, $3), nullif($4, ''),
		message => nullif($5, ''))`, l.worker, l.source, l.shard, detail, message)
	return err
}
