package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sleeper is a cursor whose worker has nothing to do.
type Sleeper struct {
	Worker, Source string
	Shard          int
	Epoch          int64 // of its lease; 0: it waits for the lease
}

// Extras are what a poll does besides, so that they need no statement of their own.
type Extras struct {
	Registry bool   // lists what there is to run
	Beat     string // name of a daemon that lives; empty: none
	Facts    any    // of that daemon, an object
	Silence  bool   // checks for silent executors
}

// Registry is what there is to run, and to listen to.
type Registry struct {
	Workers []string // that deliver by routes
	Tables  []TableCursor
	Bridge  bool // the gate notify.bridge_enabled is open
	Domains []string
}

// TableCursor is a cursor of a table whose handler is in the database.
type TableCursor struct {
	Worker      string
	Source      string
	Shard       int
	PageSize    int     `json:"page_size"`
	PageTimeout float64 `json:"page_timeout"` // seconds
}

// Seen is what a poll has found.
type Seen struct {
	Wake     map[int]string  // sleepers by their index, and why
	Registry *Registry       // where it was asked for
	Silence  json.RawMessage // rows of tidemark.stale_check, where it was asked for
}

const poll = `select l.n, l.why, null::jsonb from tidemark.poll($1, $2::float8 * interval '1 second', $3, $4, $5, $6) l
union all
select 0, 'registry', jsonb_build_object(
	'workers', (select jsonb_agg(w.worker order by w.worker) from tidemark.worker w where w.handler = 'route'),
	'tables', (select jsonb_agg(jsonb_build_object('worker', c.worker, 'source', c.source, 'shard', c.shard, 'page_size', w.page_size,
			'page_timeout', extract(epoch from w.page_timeout)) order by c.worker, c.source, c.shard)
		from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
		where w.source = 'table' and w.handler in ('sql', 'emit')),
	'bridge', tidemark.gate_open('notify.bridge_enabled'),
	'domains', (select jsonb_agg(d.domain) from tidemark.domain d)) where $7
union all
select 0, 'beat', to_jsonb(tidemark.heartbeat_daemon($8, 'running', $9::jsonb)) where $8 <> ''
union all
select 0, 'silence', (select coalesce(jsonb_agg(s), '[]') from tidemark.stale_check() s) where $10`

// Poll asks, in one statement, which of the sleepers have something to do (tidemark.poll), and runs the extras. It sends the
// heartbeats of the others, whose leases are owner's.
func Poll(ctx context.Context, db Querier, owner string, lease time.Duration, sleepers []Sleeper, extras Extras) (seen Seen, err error) {
	workers, sources := make([]string, len(sleepers)), make([]string, len(sleepers))
	shards, epochs := make([]int, len(sleepers)), make([]*int64, len(sleepers))
	for i := range sleepers {
		workers[i], sources[i], shards[i] = sleepers[i].Worker, sleepers[i].Source, sleepers[i].Shard
		if sleepers[i].Epoch > 0 {
			epochs[i] = &sleepers[i].Epoch
		}
	}
	facts, err := json.Marshal(extras.Facts)
	if err != nil {
		return seen, err
	}
	rows, err := db.Query(ctx, poll, owner, lease.Seconds(), workers, sources, shards, epochs, extras.Registry, extras.Beat, string(facts), extras.Silence)
	if err != nil {
		return seen, err
	}
	seen.Wake = map[int]string{}
	var n int
	var why string
	var told []byte
	_, err = pgx.ForEachRow(rows, []any{&n, &why, &told}, func() error {
		switch {
		case n > 0:
			seen.Wake[n-1] = why
		case why == "registry":
			seen.Registry = &Registry{}
			return json.Unmarshal(told, seen.Registry)
		case why == "silence":
			seen.Silence = append(seen.Silence, told...)
		}
		return nil
	})
	return seen, err
}
