package store

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sleeper is a cursor whose worker has nothing to do.
type Sleeper struct {
	Worker, Source string
	Shard          int
	Epoch          int64  // of its lease; 0: it waits for the lease
	Counted        *int64 // of a table, what Seen.Counted had: the poll reads it only where the server has counted more; nil: it reads it
}

// Due is what one poll asks and does. A part that is not asked for is no part of the statement, so that neither its tables' locks
// nor its errors can hold up the others.
type Due struct {
	Sleepers []Sleeper     // which of these have work? Empty: none is asked about
	Owner    string        // of the sleepers' leases
	Lease    time.Duration // for so long a poll renews them

	Registry bool   // lists what there is to run
	Beat     string // name of the daemon that beats; empty: none
	Facts    any    // of that daemon, an object
	Silence  bool   // checks for silent executors
}

// Registry is what there is to run, and to listen to.
type Registry struct {
	Logs    []LogCursor // of workers that deliver by routes
	Tables  []TableCursor
	Bridge  bool // the gate notify.bridge_enabled is open
	Domains []string
	Untried []Untried
	Jobs    bool // one of dead letters is due
}

// Untried is a route with events that were decided in dry run and for which its transform was not called yet.
type Untried struct {
	Route   string
	Timeout float64 // seconds
}

// LogCursor is a cursor of the log.
type LogCursor struct {
	Worker string
	Shard  int
}

// TableCursor is a cursor of a table.
type TableCursor struct {
	Worker  string
	Source  string
	Shard   int
	Handler string // go: it belongs to a Go program
	Paging
}

// Seen is what a poll has found.
type Seen struct {
	Wake     map[int]string // sleepers by their index, and why
	Counted  map[int]int64  // by its index: what the server had counted of a table that was read and has no work
	Registry Registry       // where it was asked for
}

const (
	askSleepers = `select l.n, coalesce(l.why, ''), to_jsonb(l.counted) from tidemark.poll(?, ?::float8 * interval '1 second', ?, ?, ?, ?, ?) l`
	askRegistry = `select 0, 'registry', jsonb_build_object(
	'logs', (select jsonb_agg(jsonb_build_object('worker', c.worker, 'shard', c.shard) order by c.worker, c.shard)
		from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
		where c.source = 'outbox' and w.handler = 'route'),
	'tables', (select jsonb_agg(jsonb_build_object('worker', c.worker, 'source', c.source, 'handler', w.handler, 'shard', c.shard, 'page_size', w.page_size,
			'page_timeout', extract(epoch from w.page_timeout)) order by c.worker, c.source, c.shard)
		from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
		where w.source = 'table'),
	'bridge', tidemark.gate_open('notify.bridge_enabled'),
	'domains', (select jsonb_agg(d.domain) from tidemark.domain d),
	'jobs', exists (select from tidemark.letter_job j where j.finished_at is null and j.due_at <= clock_timestamp()),
	'untried', (select jsonb_agg(jsonb_build_object('route', r.route_code, 'timeout', extract(epoch from r.timeout)) order by r.id)
		from tidemark.outbound_route r where r.transform is not null and exists (
			select from tidemark.decision d where d.route_id = r.id and d.reason = 'transform_untried' limit 1)))`
	askBeat    = `select 0, 'beat', to_jsonb(tidemark.heartbeat_daemon(?, 'running', ?::jsonb))`
	askSilence = `select 0, 'silence', (select to_jsonb(count(*)) from tidemark.stale_check())`
)

// Poll sends all that is asked in one statement. Of the sleepers it returns those that have something to do (tidemark.poll); for
// the others it beats and renews the lease.
func Poll(ctx context.Context, db Querier, due Due) (seen Seen, err error) {
	sql, args, err := due.statement()
	if err != nil || sql == "" {
		return seen, err
	}
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return seen, err
	}
	seen.Wake, seen.Counted = map[int]string{}, map[int]int64{}
	var n int
	var why string
	var told []byte
	_, err = pgx.ForEachRow(rows, []any{&n, &why, &told}, func() error {
		switch {
		case n > 0 && why != "":
			seen.Wake[n-1] = why
		case n > 0:
			seen.Counted[n-1], err = strconv.ParseInt(string(told), 10, 64)
			return err
		case why == "registry":
			return json.Unmarshal(told, &seen.Registry)
		}
		return nil
	})
	return seen, err
}

// statement has a numbered parameter for each question mark of its parts.
func (d Due) statement() (sql string, args []any, err error) {
	var parts []string
	if len(d.Sleepers) > 0 {
		workers, sources := make([]string, len(d.Sleepers)), make([]string, len(d.Sleepers))
		shards, epochs, counted := make([]int, len(d.Sleepers)), make([]*int64, len(d.Sleepers)), make([]*int64, len(d.Sleepers))
		for i, s := range d.Sleepers {
			workers[i], sources[i], shards[i], counted[i] = s.Worker, s.Source, s.Shard, s.Counted
			if s.Epoch > 0 {
				epochs[i] = &s.Epoch
			}
		}
		parts = append(parts, askSleepers)
		args = append(args, d.Owner, d.Lease.Seconds(), workers, sources, shards, epochs, counted)
	}
	if d.Registry {
		parts = append(parts, askRegistry)
	}
	if d.Beat != "" {
		facts, err := json.Marshal(d.Facts)
		if err != nil {
			return "", nil, err
		}
		parts = append(parts, askBeat)
		args = append(args, d.Beat, string(facts))
	}
	if d.Silence {
		parts = append(parts, askSilence)
	}
	sql = strings.Join(parts, "\nunion all\n")
	for n := range args {
		sql = strings.Replace(sql, "?", "$"+strconv.Itoa(n+1), 1)
	}
	return sql, args, nil
}
