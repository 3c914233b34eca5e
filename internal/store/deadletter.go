package store

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// DeadLetter is an event that could not be routed or delivered, or a row of a source that
// could not be handled.
type DeadLetter struct {
	ID               int64      `db:"id" json:"id"`
	RouteCode        *string    `db:"route_code" json:"route_code"` // with Seq and EventID null for a row
	Worker           string     `db:"worker" json:"worker"`
	Seq              *int64     `db:"seq" json:"seq"`
	EventID          *string    `db:"event_id" json:"event_id"`
	Source           string     `db:"source" json:"source"` // outbox, or the row's
	Shard            int        `db:"shard" json:"shard"`
	ItemID           *string    `db:"item_id" json:"item_id"` // with ItemTS null for an event
	ItemTS           *time.Time `db:"item_ts" json:"item_ts"`
	ErrorCode        string     `db:"error_code" json:"error_code"`
	ErrorDetail      *string    `db:"error_detail" json:"error_detail"`
	Attempts         int        `db:"attempts" json:"attempts"`
	FirstFailedAt    time.Time  `db:"first_failed_at" json:"first_failed_at"`
	LastFailedAt     time.Time  `db:"last_failed_at" json:"last_failed_at"`
	ResolvedAt       *time.Time `db:"resolved_at" json:"resolved_at"` // null: open
	Resolution       *string    `db:"resolution" json:"resolution"`
	ResolvedBy       *string    `db:"resolved_by" json:"resolved_by"`
	ResolutionReason *string    `db:"resolution_reason" json:"resolution_reason"`
	IdempotencyKey   string     `db:"idempotency_key" json:"idempotency_key"`
}

const deadLetter = `select l.id, r.route_code, w.worker, l.seq, l.event_id::text, l.source, l.shard, l.item_id,
	l.item_ts, l.error_code, s.error_detail, l.attempts,
	l.first_failed_at, l.last_failed_at, l.resolved_at, l.resolution, l.resolved_by, l.resolution_reason, l.idempotency_key
from tidemark.dead_letter l
left join tidemark.route_name r on r.id = l.route_id
join tidemark.worker_name w on w.id = l.worker_id
join tidemark.letter_detail s on s.id = l.id `

// LetterFilter chooses dead letters. The zero value of a field chooses all.
type LetterFilter struct {
	Route, Code  string
	Source       string       // outbox: events
	Since, Until time.Time    // last_failed_at in [Since, Until)
	Resolved     bool         // the resolved ones too
	Limit        int          // at most so many; 0: all
	After        int64        // of replays: go on after this one; 0: from the first
	Place        *LetterPlace // of lists: go on after it; nil: from the latest
}

// LetterPlace is the place of a dead letter in the list. The letter itself may have failed again, or be gone since.
type LetterPlace struct {
	Failed time.Time `json:"f"`
	ID     int64     `json:"i"`
}

// Place is where the letter is in the list.
func (l DeadLetter) Place() LetterPlace { return LetterPlace{l.LastFailedAt, l.ID} }

// DeadLetters returns dead letters, those that failed last first.
func (db *DB) DeadLetters(ctx context.Context, f LetterFilter) ([]DeadLetter, error) {
	var after LetterPlace
	if f.Place != nil {
		after = *f.Place
	}
	return list[DeadLetter](ctx, db, deadLetter+`
		where ($1 = '' or r.route_code = $1) and ($2 = '' or l.error_code = $2)
		  and ($3::timestamptz is null or l.last_failed_at >= $3) and ($4::timestamptz is null or l.last_failed_at < $4)
		  and ($5 or l.resolved_at is null) and ($7 = '' or l.source = $7)
		  and ($8 or (l.last_failed_at, l.id) < ($9, $10))
		order by l.last_failed_at desc, l.id desc limit nullif($6::integer, 0)`,
		f.Route, f.Code, instant(f.Since), instant(f.Until), f.Resolved, f.Limit, f.Source, f.Place == nil, after.Failed, after.ID)
}

// DeadLetter returns one dead letter, or tidemark.ErrNotFound.
func (db *DB) DeadLetter(ctx context.Context, id int64) (DeadLetter, error) {
	l, err := one[DeadLetter](ctx, db, deadLetter+`where l.id = $1`, id)
	return known(l, err, "dead letter "+strconv.FormatInt(id, 10), "Open ones: tidemark dead-letter list")
}

// DeadLetterSnapshot returns the event or row as the dead letter keeps it. Null: the role
// that logged in may not read payloads.
func (db *DB) DeadLetterSnapshot(ctx context.Context, id int64) (json.RawMessage, error) {
	may, err := value[bool](ctx, db, `select has_column_privilege('tidemark.dead_letter', 'event_snapshot', 'select')`)
	if err != nil || !may {
		return nil, err
	}
	return value[json.RawMessage](ctx, db, `select l.event_snapshot from tidemark.dead_letter l where l.id = $1`, id)
}

// Replay is what a replay of a dead letter came to, or in a dry run would come to.
type Replay struct {
	ID        int64   `db:"id" json:"id"`
	RouteCode *string `db:"route_code" json:"route_code"`
	EventID   *string `db:"event_id" json:"event_id"`
	Source    string  `db:"source" json:"source"`
	ItemID    *string `db:"item_id" json:"item_id"`
	AttemptNo int     `db:"attempt_no" json:"attempt_no"`
	Outcome   string  `db:"outcome" json:"outcome"`
	Reason    *string `db:"reason" json:"reason"`
	Detail    *string `db:"detail" json:"detail"`
}

const replay = `select p.id, case when l.route_id is not null then p.route_code end as route_code, p.event_id::text, l.source, l.item_id, p.attempt_no, p.outcome::text, p.reason, p.detail
from tidemark.dead_letter l join `

// DeadLetterReplay calls tidemark.dead_letter_replay.
func (db *DB) DeadLetterReplay(ctx context.Context, id int64, dryRun bool, reason string) (Replay, error) {
	return one[Replay](ctx, db, replay+`tidemark.dead_letter_replay($1, $2, nullif($3, '')) p on p.id = l.id`, id, dryRun, reason)
}

// DeadLetterReplayMany calls tidemark.dead_letter_replay_many for the open letters that
// f chooses. Its Limit is needed. The ID of the last one is After of the next call.
func (db *DB) DeadLetterReplayMany(ctx context.Context, f LetterFilter, dryRun bool, reason string) ([]Replay, error) {
	return list[Replay](ctx, db, replay+`tidemark.dead_letter_replay_many(
			route => nullif($1, ''), error_code => nullif($2, ''), failed_since => $3, failed_until => $4,
			max_letters => $5, dry_run => $6, source => nullif($7, ''), after => nullif($8::bigint, 0), reason => nullif($9, '')) with ordinality p on p.id = l.id order by p.ordinality`,
		f.Route, f.Code, instant(f.Since), instant(f.Until), f.Limit, dryRun, f.Source, f.After, reason)
}

// DeadLetterDiscard calls tidemark.dead_letter_discard.
func (db *DB) DeadLetterDiscard(ctx context.Context, id int64, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.dead_letter_discard($1, $2)`, id, reason)
	return tidemark.AsError(err)
}

// DeadLettersDiscard calls tidemark.dead_letter_discard once for each of them, in the order of their numbers: two that name the same
// letters wait for each other in turn. It returns them. A dry run discards none, and returns those that are open.
func (db *DB) DeadLettersDiscard(ctx context.Context, ids []int64, reason string, dryRun bool) ([]DeadLetter, error) {
	if !dryRun {
		if _, err := db.querier.Exec(ctx, `select tidemark.dead_letter_discard(i.id, $2)
			from (select distinct i.id from unnest($1::bigint[]) i (id) order by i.id) i`, ids, reason); err != nil {
			return nil, tidemark.AsError(err)
		}
	}
	return list[DeadLetter](ctx, db, deadLetter+`where l.id = any ($1) and (l.resolved_at is null or not $2) order by l.id`, ids, dryRun)
}

// LetterGroup is a number of open dead letters with the same route or source and the same error.
type LetterGroup struct {
	Route     *string   `db:"route_code" json:"route_code"` // null: rows of Source
	Source    string    `db:"source" json:"source"`
	ErrorCode string    `db:"error_code" json:"error_code"`
	Letters   int64     `db:"letters" json:"letters"`
	First     time.Time `db:"first_failed_at" json:"first_failed_at"`
	Last      time.Time `db:"last_failed_at" json:"last_failed_at"`
	Newest    int64     `db:"newest" json:"newest" doc:"The id of the newest of them."`
	Line      *string   `db:"line" json:"line" doc:"The first line of the newest one's error, at most 200 characters, as the person may see it."`
	Lines     []Line    `db:"lines" json:"lines" doc:"The most frequent first lines of the newest 1000 of them, at most 3."`
	Kinds     int64     `db:"kinds" json:"kinds" doc:"How many different first lines the newest 1000 have."`
	Complete  bool      `db:"complete" json:"complete"`
}

// Line is the first line of errors of a group of dead letters.
type Line struct {
	Line    *string `json:"line" doc:"At most 200 characters, as the person may see it."`
	Letters int64   `json:"letters"`
	Newest  int64   `json:"newest" doc:"The id of the newest of them."`
}

// GroupPlace is the place of a group in the list of groups. The group itself may have grown, shrunk or gone since.
type GroupPlace struct {
	Letters int64  `json:"n"`
	Route   string `json:"r"`
	Source  string `json:"s"`
	Code    string `json:"c"`
}

// Place is where the group is in the list.
func (g LetterGroup) Place() GroupPlace {
	at := GroupPlace{g.Letters, "", g.Source, g.ErrorCode}
	if g.Route != nil {
		at.Route = *g.Route
	}
	return at
}

// firstLine is the first line of an error that is not empty. A regular expression takes three times as long.
const firstLine = `left(split_part(ltrim(translate(left(d.error_detail, 1000), E'\r', E'\n'), E'\n'), E'\n', 1), 200)`

// LettersRead is of how many letters of a group, the newest, the errors are read.
const LettersRead = 1000

// LetterGroups groups the newest 10000 open dead letters, of a route or of all (empty), the largest group first; Complete tells
// whether these are all. It goes on after a place (nil: from the first), with at most limit groups (0: all).
func (db *DB) LetterGroups(ctx context.Context, route string, after *GroupPlace, limit int) ([]LetterGroup, error) {
	first := after == nil
	if first {
		after = &GroupPlace{}
	}
	return list[LetterGroup](ctx, db, `with open as materialized (
			select l.id, l.route_id, l.source, l.error_code, l.first_failed_at, l.last_failed_at
			from tidemark.dead_letter l
			where l.resolved_at is null and ($7 = '' or l.route_id = (select r.id from tidemark.outbound_route r where r.route_code = $7))
			order by l.id desc limit 10001),
		shown as materialized (
			select g.* from (
				select r.route_code, o.route_id, o.source, o.error_code, count(*) as letters, min(o.first_failed_at) as first_failed_at,
					max(o.last_failed_at) as last_failed_at, max(o.id) as newest, (select count(*) <= 10000 from open) as complete
				from open o left join tidemark.outbound_route r on r.id = o.route_id
				group by 1, 2, 3, 4) g
			where $1 or g.letters < $2 or g.letters = $2 and (coalesce(g.route_code, ''), g.source, g.error_code) > ($3, $4, $5)
			order by g.letters desc, coalesce(g.route_code, ''), g.source, g.error_code limit nullif($6::integer, 0)),
		lines as (
			select o.of, `+firstLine+` as line, count(*) as letters, max(o.id) as newest
			from (select o.id, s.newest as of, row_number() over (partition by s.newest order by o.id desc) as n from shown s
			      join open o on coalesce(o.route_id, 0) = coalesce(s.route_id, 0) and o.source = s.source and o.error_code = s.error_code) o
			join tidemark.letter_detail d on d.id = o.id
			where o.n <= $8
			group by 1, 2),
		told as (
			select l.of, count(*) as kinds,
				jsonb_agg(jsonb_build_object('line', l.line, 'letters', l.letters, 'newest', l.newest) order by l.n) filter (where l.n <= 3) as lines
			from (select l.*, row_number() over (partition by l.of order by l.letters desc, l.newest desc) as n from lines l) l
			group by 1)
		select s.route_code, s.source, s.error_code, s.letters, s.first_failed_at, s.last_failed_at, s.newest, s.complete, t.lines, t.kinds,
			(select `+firstLine+` from tidemark.letter_detail d where d.id = s.newest) as line
		from shown s join told t on t.of = s.newest
		order by s.letters desc, coalesce(s.route_code, ''), s.source, s.error_code`,
		first, after.Letters, after.Route, after.Source, after.Code, limit, route, LettersRead)
}

// LetterDetails is a dead letter and what it keeps.
type LetterDetails struct {
	DeadLetter
	EventSnapshot json.RawMessage `json:"event_snapshot" doc:"null: hidden from this role."`
}

// LetterDetails returns one dead letter with the event or row that it keeps, or tidemark.ErrNotFound.
func (db *DB) LetterDetails(ctx context.Context, id int64) (d LetterDetails, err error) {
	err = InTurn(
		func() error { d.DeadLetter, err = db.DeadLetter(ctx, id); return err },
		func() error { d.EventSnapshot, err = db.DeadLetterSnapshot(ctx, id); return err },
	)
	return d, err
}
