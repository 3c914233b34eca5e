package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Paging bounds a list.
type Paging struct {
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"At most so many."`
}

// Span is a time.
type Span struct {
	Since time.Time `query:"since" doc:"From this time on."`
	Until time.Time `query:"until" doc:"Before this time."`
}

// List is a part of a list.
type List[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  *int64 `json:"next" doc:"Give it as before to get the next part; null: there is none."`
}

// part makes a list of what was read with one more than the limit.
func part[T any](all []T, limit int, id func(T) int64) List[T] {
	items, next := split(all, limit, id)
	return List[T]{items, next}
}

// ByName bounds a list by name, or by place.
type ByName struct {
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many."`
	After string `query:"after" doc:"Those after this one: next of the part before."`
}

// part has one more than the limit.
func (b ByName) part() store.Part { return store.Part{After: b.After, Limit: b.Limit + 1} }

// Names is a part of a list by name, or by place.
type Names[T any] struct {
	Items []T     `json:"items" nullable:"false"`
	Next  *string `json:"next" doc:"Give it as after to get the next part; null: there is none."`
}

// names makes a list of what was read of a part.
func names[T any](all []T, b ByName, name func(T) string) Names[T] {
	items, next := split(all, b.Limit, name)
	return Names[T]{items, next}
}

// places makes a list, by place, of what was read of a part. The place of an item is what orders the list and not the item, so that
// the list goes on where the item was, also if it has moved or gone since.
func places[T, P any](all []T, b ByName, place func(T) P) Names[T] {
	return names(all, b, func(item T) string { return written(place(item)) })
}

// written is a place as a text.
func written[P any](place P) string {
	text, _ := json.Marshal(place) // texts, numbers and times: it cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

// place reads where a list by place goes on; nil: from the first.
func place[P any](b ByName) (*P, error) {
	if b.After == "" {
		return nil, nil
	}
	var at P
	text, err := base64.RawURLEncoding.DecodeString(b.After)
	if err != nil || json.Unmarshal(text, &at) != nil || written(at) != b.After { // perhaps a place in another list
		return nil, problem(http.StatusUnprocessableEntity, "after is no place in this list", "Give next of the part before as it is.")
	}
	return &at, nil
}

// split leaves out what is over the limit, and returns the last one before it; nil: that is all.
func split[T, C any](all []T, limit int, cursor func(T) C) ([]T, *C) {
	if len(all) <= limit {
		return append([]T{}, all...), nil // not null
	}
	next := cursor(all[limit-1])
	return all[:limit], &next
}

type eventQuery struct {
	Paging
	Span
	Domain  string `query:"domain"`
	Type    string `query:"type"`
	Stream  string `query:"stream"`
	Key     string `query:"key"`
	Subject string `query:"subject" doc:"subject_ref of the events."`
	Before  int64  `query:"before" minimum:"0" doc:"Only numbers below this one."`
}

// searched is how many numbers of the log one search looks at: no index has domains, types, keys, streams and subjects.
const searched = 100_000

func (in eventQuery) search(ctx context.Context, db *store.DB) (found List[store.StoredEvent], err error) {
	f := store.EventFilter{
		Domain: in.Domain, Type: in.Type, Stream: in.Stream, Key: in.Key, Subject: in.Subject, Since: in.Since, Until: in.Until,
		BeforeSeq: in.Before, Limit: in.Limit + 1,
	}
	var first int64
	if in.Domain+in.Type+in.Stream+in.Key+in.Subject != "" {
		var last int64
		if first, last, err = db.LogSpan(ctx); err != nil {
			return found, err
		}
		if f.BeforeSeq == 0 {
			f.BeforeSeq = last + 1
		}
		f.FromSeq = min(f.BeforeSeq, last+1) - searched
	}
	all, err := db.Events(ctx, f)
	found = part(all, in.Limit, func(e store.StoredEvent) int64 { return e.Seq })
	if found.Next == nil && f.FromSeq > first {
		found.Next = &f.FromSeq // what is before it was not looked at
	}
	return found, err
}

type EventPath struct {
	Event string `path:"event" doc:"Number or id of the event."`
}

type whyQuery struct {
	EventPath
	Route string `query:"route" required:"true"`
}

// Explained is why one route delivered an event or did not.
type Explained struct {
	Route string `json:"route_code"`
	store.Why
}

func (s *server) log() {
	operation(s, "GET", "/events", "Events of the log, newest first, without payloads. A search by more than time looks at "+
		"100000 numbers at a time: it may find fewer than the limit and have a next", see,
		func(ctx context.Context, db *store.DB, in *eventQuery) (List[store.StoredEvent], error) {
			return in.search(ctx, db)
		})
	operation(s, "GET", "/events/{event}", "An event, its payload and its evidence", see,
		func(ctx context.Context, db *store.DB, in *EventPath) (d store.EventDetails, err error) {
			seq, err := in.number(ctx, db)
			if err != nil {
				return d, err
			}
			return db.EventDetails(ctx, seq)
		})
	operation(s, "GET", "/events/{event}/why", "Why a route delivered the event or did not", see,
		func(ctx context.Context, db *store.DB, in *whyQuery) (x Explained, err error) {
			seq, err := in.number(ctx, db)
			if err != nil {
				return x, err
			}
			e, err := db.Event(ctx, seq)
			if err != nil {
				return x, err
			}
			x.Route = in.Route
			x.Why, err = db.Why(ctx, e.EventID, in.Route)
			return x, err
		})
}

// number finds the number of an event that is given by number or id.
func (in EventPath) number(ctx context.Context, db *store.DB) (int64, error) {
	seq, err := db.EventNumber(ctx, in.Event)
	return seq, eventName(err)
}

// eventName says how an event is named.
func eventName(err error) error {
	if errors.Is(err, store.ErrEventName) {
		return problem(http.StatusUnprocessableEntity, "an event is named by its number or its id, a UUID", "")
	}
	return err
}
