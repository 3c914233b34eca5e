package api

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

type WorkerPath struct {
	Worker string `path:"worker"`
}

type SourcePath struct {
	Source string `path:"source"`
}

// WorkerDetails is a worker, how far each of its cursors is, and what it does next.
type WorkerDetails struct {
	store.WorkerDetails
	Outlook []store.Outlook `json:"outlook" doc:"What it does next; of a worker of the log."`
}

// SourceDetails is a source and what its check finds.
type SourceDetails struct {
	store.Source
	Checks []store.Check `json:"checks"`
}

// Rewind is where a worker of the log goes back to.
type Rewind struct {
	ToSeq  int64  `json:"to_seq" minimum:"0" doc:"It decides the events above this number again."`
	DryRun bool   `json:"dry_run,omitempty" doc:"Tell what would happen."`
	Reason string `json:"reason" minLength:"1" maxLength:"1024"`
}

// SourceRewind is where a worker of a table goes back to.
type SourceRewind struct {
	Source string    `json:"source"`
	ToTime time.Time `json:"to_time,omitzero"`
	ToID   string    `json:"to_id,omitempty"`
	DryRun bool      `json:"dry_run,omitempty" doc:"Tell what would happen."`
	Reason string    `json:"reason" minLength:"1" maxLength:"1024"`
}

// SourceRewound is what a rewind of a worker of a table came to.
type SourceRewound struct {
	Moved
	Outlook []store.RewindOutlook `json:"outlook,omitempty" doc:"Of a dry run: what each cursor would read again."`
}

// WorkerSource is a source that a worker reads.
type WorkerSource struct {
	Source string `json:"source" minLength:"1"`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// Changed tells whether an act changed anything.
type Changed struct {
	Changed bool `json:"changed"`
}

// Moved is how many cursors were moved, made or dropped.
type Moved struct {
	Cursors int `json:"cursors"`
}

// Captures are the captured tables.
type Captures struct {
	Tables []store.Captured `json:"tables"`
	Checks []store.Check    `json:"checks" doc:"What the check of the triggers finds."`
	Gaps   []store.Gap      `json:"gaps" doc:"Rows without an event."`
}

// Emitted is how many events were emitted.
type Emitted struct {
	Emitted int64 `json:"emitted"`
}

func (s *server) workers() {
	operation(s, "GET", "/workers", "Workers, and how their cursors are doing", see,
		func(ctx context.Context, db *store.DB, in *ByName) (Names[store.WorkerSummary], error) {
			all, err := db.WorkerSummaries(ctx, in.part())
			return names(all, *in, func(w store.WorkerSummary) string { return store.ExecutorID(w.Worker, w.Source, w.Shard) }), err
		})
	operation(s, "GET", "/workers/{worker}", "A worker's settings, and how far each of its cursors is", see,
		func(ctx context.Context, db *store.DB, in *WorkerPath) (d WorkerDetails, err error) {
			if d.WorkerDetails, err = db.WorkerDetails(ctx, in.Worker); err == nil && d.Log != nil {
				d.Outlook, err = db.WorkerOutlook(ctx, in.Worker)
			}
			return d, err
		})
	type pauses struct {
		WorkerPath
		Body Act
	}
	pausing(s, "/workers/{worker}", "Stop a worker where it stands", "Let a paused worker continue",
		func(ctx context.Context, db *store.DB, in *pauses, pause bool) (bool, error) {
			return db.WorkerPause(ctx, in.Worker, pause, in.Body.Reason)
		})
	act(s, "PATCH", "/workers/{worker}", "Change a worker", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			WorkerPath
			Body Changes
		},
		) (store.Worker, error) {
			if _, err := db.Worker(ctx, in.Worker); err != nil {
				return store.Worker{}, err
			}
			return db.WorkerSet(ctx, in.Worker, in.Body.Set, in.Body.Reason, "")
		})
	act(s, "PUT", "/workers/{worker}", "Create a worker, or change it; a new worker of the log begins at its end", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			WorkerPath
			Body Changes
		},
		) (store.Worker, error) {
			return db.WorkerSet(ctx, in.Worker, in.Body.Set, in.Body.Reason, "")
		})
	act(s, "POST", "/workers/{worker}/attach", "Let a worker of tables read a source, from the beginning of the table", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			WorkerPath
			Body WorkerSource
		},
		) (out Moved, err error) {
			out.Cursors, err = db.WorkerSourceAdd(ctx, in.Worker, in.Body.Source, in.Body.Reason)
			return out, err
		})
	act(s, "POST", "/workers/{worker}/detach", "Take a source from a worker of tables and drop its cursors; the audit keeps them", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			WorkerPath
			Body WorkerSource
		},
		) (out Moved, err error) {
			out.Cursors, err = db.WorkerSourceRemove(ctx, in.Worker, in.Body.Source, in.Body.Reason)
			return out, err
		})
	act(s, "POST", "/workers/{worker}/rewind", "Let a worker of the log decide events again", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			WorkerPath
			Body Rewind
		},
		) ([]store.Rewound, error) {
			return db.WorkerRewind(ctx, in.Worker, in.Body.ToSeq, in.Body.Reason, in.Body.DryRun)
		})
	act(s, "POST", "/workers/{worker}/source-rewind", "Let a worker of a table handle rows again", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			WorkerPath
			Body SourceRewind
		},
		) (out SourceRewound, err error) {
			if in.Body.DryRun {
				out.Outlook, err = db.SourceRewindOutlook(ctx, in.Worker, in.Body.Source, in.Body.ToTime, in.Body.ToID)
				out.Cursors = len(out.Outlook)
				return out, err
			}
			out.Cursors, err = db.SourceRewind(ctx, in.Worker, in.Body.Source, in.Body.Reason, in.Body.ToTime, in.Body.ToID)
			return out, err
		})
	operation(s, "GET", "/sources", "Tables that workers read", see,
		func(ctx context.Context, db *store.DB, in *ByName) (Names[store.Source], error) {
			all, err := db.Sources(ctx, in.part())
			return names(all, *in, func(s store.Source) string { return s.Source }), err
		})
	operation(s, "GET", "/sources/{source}", "A source, and what its check finds", see,
		func(ctx context.Context, db *store.DB, in *SourcePath) (d SourceDetails, err error) {
			err = store.InTurn(
				func() error { d.Source, err = db.Source(ctx, in.Source); return err },
				func() error { d.Checks, err = db.SourceChecks(ctx, in.Source); return err },
			)
			return d, err
		})
	act(s, "PATCH", "/sources/{source}", "Change a source", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			SourcePath
			Body Changes
		},
		) (store.Source, error) {
			if err := db.SourceSet(ctx, in.Source, in.Body.Set, in.Body.Reason); err != nil {
				return store.Source{}, err
			}
			return db.Source(ctx, in.Source)
		})
}
