package store

import (
	"context"
	"encoding/json"
	"time"
)

// Scrape is what /metrics shows of the database (tidemark.scrape): from one statement, and so from one moment.
type Scrape struct {
	Items        []ScrapedItem
	Causes       []ScrapedCause
	Cursors      []ScrapedCursor
	Gates        map[string]bool  // open
	Paused       []string         // routes
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

// Scrape calls tidemark.scrape.
func (db *DB) Scrape(ctx context.Context) (s Scrape, err error) {
	text, err := value[[]byte](ctx, db, `select tidemark.scrape()`)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}
