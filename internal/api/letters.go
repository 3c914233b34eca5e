package api

import (
	"context"
	"slices"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

type pendingQuery struct {
	ByName
	Worker string `query:"worker"`
	Route  string `query:"route"`
	Source string `query:"source" doc:"outbox: events; else rows of this source."`
}

type letterQuery struct {
	ByName
	Span
	Route    string `query:"route"`
	Source   string `query:"source" doc:"outbox: events; else rows of this source."`
	Code     string `query:"code" doc:"Error code."`
	Resolved bool   `query:"resolved" doc:"The resolved ones too."`
}

type LetterPath struct {
	ID int64 `path:"id" minimum:"1"`
}

// Letters chooses dead letters for an act.
type Letters struct {
	Route  string  `json:"route,omitempty"`
	Source string  `json:"source,omitempty"`
	Code   string  `json:"code,omitempty"`
	IDs    []int64 `json:"ids,omitempty" maxItems:"500" doc:"These alone."`
	After  int64   `json:"after,omitempty" minimum:"0" doc:"Go on after this one: next of the act before."`
	DryRun bool    `json:"dry_run,omitempty" doc:"Change nothing; tell what would happen."`
	Limit  int     `json:"limit,omitempty" minimum:"1" maximum:"500" default:"500"`
	Reason string  `json:"reason,omitempty" maxLength:"1024" doc:"Why, for the audit of each of them. Needed unless dry_run."`
}

// LettersChosen are dead letters, by their numbers.
type LettersChosen struct {
	IDs    []int64 `json:"ids" minItems:"1" maxItems:"500"`
	DryRun bool    `json:"dry_run,omitempty" doc:"Change nothing; tell which they are."`
	Reason string  `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// Replays is what a replay of dead letters came to.
type Replays struct {
	Items []store.Replay `json:"items"`
	Next  *int64         `json:"next" doc:"Give it as after to go on; null: that was all."`
}

func (s *server) letters() {
	operation(s, "GET", "/pending", "What waits for another attempt, the next to be due first", see,
		func(ctx context.Context, db *store.DB, in *pendingQuery) (some Names[store.PendingItem], err error) {
			after, err := place[store.PendingPlace](in.ByName)
			if err != nil {
				return some, err
			}
			all, err := db.Pending(ctx, store.PendingFilter{Worker: in.Worker, Source: in.Source, Route: in.Route, Limit: in.Limit + 1, After: after})
			return places(all, in.ByName, store.PendingItem.Place), err
		})
	s.pending()
	operation(s, "GET", "/dead-letters", "Dead letters, the latest failure first", see,
		func(ctx context.Context, db *store.DB, in *letterQuery) (some Names[store.DeadLetter], err error) {
			after, err := place[store.LetterPlace](in.ByName)
			if err != nil {
				return some, err
			}
			all, err := db.DeadLetters(ctx, store.LetterFilter{
				Route: in.Route, Source: in.Source, Code: in.Code, Since: in.Since, Until: in.Until, Resolved: in.Resolved,
				Place: after, Limit: in.Limit + 1,
			})
			return places(all, in.ByName, store.DeadLetter.Place), err
		})
	operation(s, "GET", "/dead-letter-groups", "Open dead letters by route or source and error, the largest group first; of the newest 10000", see,
		func(ctx context.Context, db *store.DB, in *struct {
			ByName
			Route string `query:"route" doc:"Those of this route alone."`
		},
		) (some Names[store.LetterGroup], err error) {
			after, err := place[store.GroupPlace](in.ByName)
			if err != nil {
				return some, err
			}
			all, err := db.LetterGroups(ctx, in.Route, after, in.Limit+1)
			return places(all, in.ByName, store.LetterGroup.Place), err
		})
	operation(s, "GET", "/dead-letters/{id}", "A dead letter and the event or row that it keeps", see,
		func(ctx context.Context, db *store.DB, in *LetterPath) (store.LetterDetails, error) {
			return db.LetterDetails(ctx, in.ID)
		})
	act(s, "POST", "/dead-letters/{id}/discard", "Resolve a dead letter that will never be delivered", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			LetterPath
			Body Act
		},
		) (store.DeadLetter, error) {
			if err := db.DeadLetterDiscard(ctx, in.ID, in.Body.Reason); err != nil {
				return store.DeadLetter{}, err
			}
			return db.DeadLetter(ctx, in.ID)
		})
	act(s, "POST", "/dead-letters/discard", "Resolve several dead letters that will never be delivered: all of them, or none", operate,
		func(ctx context.Context, db *store.DB, in *struct{ Body LettersChosen }) ([]store.DeadLetter, error) {
			return db.DeadLettersDiscard(ctx, in.Body.IDs, in.Body.Reason, in.Body.DryRun)
		})
	operation(s, "GET", "/dead-letter-jobs", "Jobs that replay or discard many dead letters, the latest first", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Paging
			Open   bool  `query:"open" doc:"Only those that are not over."`
			Before int64 `query:"before" minimum:"0" doc:"Only numbers below this one."`
		},
		) (List[store.LetterJob], error) {
			all, err := db.LetterJobs(ctx, in.Open, in.Before, in.Limit+1)
			return part(all, in.Limit, func(j store.LetterJob) int64 { return j.ID }), err
		})
	act(s, "POST", "/dead-letter-jobs", "Replay or discard all dead letters of a route or source, as a job of the daemon", operate,
		func(ctx context.Context, db *store.DB, in *struct{ Body store.LetterJobAsk }) (store.LetterJobAdded, error) {
			b := in.Body
			added, err := db.LetterJobAdd(ctx, b)
			switch {
			case err != nil:
			case added.Job != nil: // A few letters are done at once, even where no daemon runs.
				_, _, err = db.LetterJobStep(ctx, added.Job)
			case b.DryRun && b.Action == "replay":
				added.Sample, err = db.DeadLetterReplayMany(ctx, store.LetterFilter{Route: b.Route, Source: b.Source, Code: b.Code, Limit: 10}, true, "")
			}
			return added, err
		})
	act(s, "POST", "/dead-letter-jobs/{id}/cancel", "Cancel a job; what it has done stays done", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			LetterPath
			Body Act
		},
		) (out none, err error) {
			return out, db.LetterJobCancel(ctx, in.ID, in.Body.Reason)
		})
	act(s, "POST", "/dead-letters/replay", "Try dead letters again, oldest events first, at most 500 at a time", operate,
		func(ctx context.Context, db *store.DB, in *struct{ Body Letters }) (out Replays, err error) {
			b := in.Body
			if b.Reason == "" && !b.DryRun {
				return out, &tidemark.Error{Code: "TM005", Message: "trying dead letters again needs a reason", Hint: "Say why, for the audit."}
			}
			if len(b.IDs) > 0 {
				for _, id := range slices.Compact(slices.Sorted(slices.Values(b.IDs))) { // two replays lock letters in one order
					one, err := db.DeadLetterReplay(ctx, id, b.DryRun, b.Reason)
					if err != nil {
						return out, err
					}
					out.Items = append(out.Items, one)
				}
				return out, nil
			}
			out.Items, err = db.DeadLetterReplayMany(ctx, store.LetterFilter{
				Route: b.Route, Source: b.Source, Code: b.Code, After: b.After, Limit: b.Limit,
			}, b.DryRun, b.Reason)
			if n := len(out.Items); err == nil && n == b.Limit {
				out.Next = &out.Items[n-1].ID
			}
			return out, err
		})
}
