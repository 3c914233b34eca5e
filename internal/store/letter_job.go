package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
)

// LetterJobAsk chooses the dead letters that a job replays or discards. One of Route and Source is needed; empty: any.
type LetterJobAsk struct {
	Action string  `json:"action" enum:"replay,discard"`
	Route  string  `json:"route,omitempty"`
	Source string  `json:"source,omitempty" doc:"outbox: events; else rows of this source."`
	Code   string  `json:"code,omitempty" doc:"Error code."`
	Rate   float64 `json:"rate,omitempty" minimum:"0" doc:"Of a replay: at most so many letters a second; 0: as many as it can."`
	DryRun bool    `json:"dry_run,omitempty" doc:"Count, and do nothing."`
	Reason string  `json:"reason,omitempty" maxLength:"1024" doc:"Needed unless dry_run."`
}

// LetterJobAdded is a job that was made.
type LetterJobAdded struct {
	Job     *int64 `db:"id" json:"job" doc:"Its number; null: a dry run, or there are no letters."`
	Letters int64  `db:"letters" json:"letters" doc:"That are chosen."`

	Sample []Replay `db:"-" json:"sample,omitempty" doc:"Of the dry run of a replay: what the first ones would come to."`
}

// LetterJobAdd calls tidemark.letter_job_add.
func (db *DB) LetterJobAdd(ctx context.Context, a LetterJobAsk) (LetterJobAdded, error) {
	return one[LetterJobAdded](ctx, db, `select j.id, j.letters from tidemark.letter_job_add($1, nullif($2, ''), nullif($3, ''),
		nullif($4, ''), nullif($5, ''), $6, nullif($7::double precision, 0)) j`, a.Action, a.Reason, a.Route, a.Source, a.Code, a.DryRun, a.Rate)
}

// LetterJobStep calls tidemark.letter_job_step; job nil: any that is due. worked: it has done letters. next: in how long a job is due that
// was not, such as one with a rate; 0: there is none. It sets statement_timeout where the session has none: nothing else ends a target
// that hangs, and slow targets end a part early, which keeps what it has done.
func (db *DB) LetterJobStep(ctx context.Context, job *int64) (worked bool, next time.Duration, err error) {
	type open struct {
		Jobs    int64
		Seconds float64
	}
	jobs, err := one[open](ctx, db, `select count(*) as jobs,
		coalesce(extract(epoch from min(j.due_at - clock_timestamp()) filter (where j.due_at > clock_timestamp())), 0)::double precision as seconds
		from tidemark.letter_job j where j.finished_at is null`)
	if err != nil || jobs.Jobs == 0 {
		return false, 0, err
	}
	next = time.Duration(jobs.Seconds * float64(time.Second))
	var batch pgx.Batch // one transaction: the setting ends with it
	batch.Queue(`select set_config('statement_timeout', ceil((20 + 2 * coalesce(extract(epoch from max(r.timeout)), 0)) * 1000)::text, true)
		from tidemark.outbound_route r where tidemark.target_is_inside(r.target_kind) having current_setting('statement_timeout') = '0'`)
	batch.Queue(`select coalesce(tidemark.letter_job_step($1), 0) > 0`, job)
	results := db.querier.SendBatch(ctx, &batch)
	_, err = results.Exec()
	if err == nil {
		err = results.QueryRow().Scan(&worked)
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	return worked, next, tidemark.AsError(err)
}

// LetterJob is a job that replays or discards dead letters, and how far it has come.
type LetterJob struct {
	ID          int64           `db:"id" json:"id"`
	Action      string          `db:"action" json:"action"`
	RouteCode   *string         `db:"route_code" json:"route_code"`
	Source      *string         `db:"source" json:"source"`
	ErrorCode   *string         `db:"error_code" json:"error_code"`
	State       string          `db:"state" json:"state"` // running, waiting, finished or cancelled
	WaitsFor    *string         `db:"waits_for" json:"waits_for"`
	Letters     int64           `db:"letters" json:"letters"`
	Done        int64           `db:"done" json:"done"`
	Outcomes    json.RawMessage `db:"outcomes" json:"outcomes"`
	RequestedAt time.Time       `db:"requested_at" json:"requested_at"`
	RequestedBy string          `db:"requested_by" json:"requested_by"`
	Reason      string          `db:"reason" json:"reason"`
	FinishedAt  *time.Time      `db:"finished_at" json:"finished_at"`
	Rate        *float64        `db:"rate" json:"rate"` // letters a second at most
}

// LetterJobs returns the latest jobs, those below the number before; 0: all. openOnly: those that are not over.
func (db *DB) LetterJobs(ctx context.Context, openOnly bool, before int64, limit int) ([]LetterJob, error) {
	return list[LetterJob](ctx, db, `select * from tidemark.letter_job_summary s where (not $1 or s.finished_at is null) and ($2::bigint = 0 or s.id < $2)
		order by s.id desc limit nullif($3::integer, 0)`, openOnly, before, limit)
}

// LetterJobCancel calls tidemark.letter_job_cancel.
func (db *DB) LetterJobCancel(ctx context.Context, id int64, reason string) error {
	_, err := value[any](ctx, db, `select tidemark.letter_job_cancel($1, $2)::text`, id, reason)
	return err
}
