package store

import (
	"context"
	"encoding/json"
	"time"
)

// Scrape is what /metrics shows of the database: from one statement, and so from one moment.
type Scrape struct {
	Items        []ScrapedItem
	Causes       []ScrapedCause
	Cursors      []ScrapedCursor
	Gates        map[string]bool  // open
	Parked       map[string]int64 // commands by service, 10000 at most
	Unregistered []UnregisteredEmits
	Live, Armed  bool
}

// ScrapedItem is a row of tidemark.queue_health, without findings.
type ScrapedItem struct {
	Kind, Name, Status string
	AgeSeconds         *int64 `json:"age_seconds"`
	Count              *int64
}

// ScrapedCause is an open cause that the watch has told.
type ScrapedCause struct {
	Cause, Subject, Severity string
	Count                    int64
}

// ScrapedCursor is how far a cursor is.
type ScrapedCursor struct {
	Worker, Source string
	Shard          int
	Events         *int64     // behind; null: not of the log
	Seconds        *int64     // behind; null: unknown
	Holes          int64      // numbers
	LastRunAt      *time.Time `json:"last_run_at"`
}

// Scrape reads it.
func (db *DB) Scrape(ctx context.Context) (s Scrape, err error) {
	text, err := value[[]byte](ctx, db, `select jsonb_build_object(
		'items', (select jsonb_agg(jsonb_build_object('kind', q.kind, 'name', q.name, 'status', q.status, 'age_seconds', q.age_seconds, 'count', q.count)
				order by array_position('{bad,unknown,warn,ok}'::text[], q.status), q.kind, q.name)
			from tidemark.queue_health q where q.kind <> 'finding'),
		'causes', (select jsonb_agg(jsonb_build_object('cause', tidemark.finding_cause(f.kind), 'subject', f.subject, 'severity', f.severity, 'count', f.count)
				order by f.severity desc, f.opened_at)
			from tidemark.finding f where f.told = 'opened' and f.closed_at is null),
		'cursors', (select jsonb_agg(jsonb_build_object('worker', l.worker, 'source', l.source, 'shard', l.shard, 'seconds', l.seconds, 'holes', l.holes,
				'last_run_at', l.last_run_at, 'events', case when l.source = 'outbox' then l.events end))
			from tidemark.cursor_lag l),
		'gates', (select jsonb_object_agg(g.gate, tidemark.gate_open(g.gate))
			from (select unnest('{routes.enabled,notify.bridge_enabled,notify.listeners_enabled}'::text[]) as gate
			      union select 'commands.enabled' from tidemark.service
			      union select 'commands.' || s.service || '.enabled' from tidemark.service s
			      union select s.key from tidemark.setting s where s.key like 'domain.%.enabled'
			      union select 'worker.' || w.worker || '.enabled' from tidemark.worker w) g),
		'parked', (select jsonb_object_agg(s.service, (select count(*) from (
				select from tidemark.command_parked p where p.service = s.service limit 10000) p)) from tidemark.service s),
		'unregistered', (select jsonb_agg(u) from tidemark.unregistered_emits u),
		'live', (select s.stage = 'live' from tidemark.stage s), 'armed', tidemark.armed())`)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}
