package api

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
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
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"Give it as before to get the next part; null: there is none."`
}

// part makes a list of what was read with one more than the limit.
func part[T any](all []T, limit int, id func(T) string) List[T] {
	if len(all) <= limit {
		return List[T]{Items: all}
	}
	next := id(all[limit-1])
	return List[T]{all[:limit], &next}
}

func number(id int64) string { return strconv.FormatInt(id, 10) }

type eventQuery struct {
	Paging
	Span
	Domain string `query:"domain"`
	Type   string `query:"type"`
	Stream string `query:"stream"`
	Key    string `query:"key"`
	Before int64  `query:"before" minimum:"0" doc:"Only numbers below this one."`
}

type EventPath struct {
	Event string `path:"event" doc:"Number or id of the event."`
}

// EventDetails is an event and what became of it.
type EventDetails struct {
	store.StoredEvent
	Payload  json.RawMessage `json:"payload" doc:"null: hidden from this role."`
	Evidence []store.Attempt `json:"evidence"`
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
	operation(s, "GET", "/events", "Events of the log, newest first, without payloads", see,
		func(ctx context.Context, db *store.DB, in *eventQuery) (List[store.StoredEvent], error) {
			all, err := db.Events(ctx, store.EventFilter{
				Domain: in.Domain, Type: in.Type, Stream: in.Stream, Key: in.Key, Since: in.Since, Until: in.Until,
				BeforeSeq: in.Before, Limit: in.Limit + 1,
			})
			return part(all, in.Limit, func(e store.StoredEvent) string { return number(e.Seq) }), err
		})
	operation(s, "GET", "/events/{event}", "An event, its payload and its evidence", see,
		func(ctx context.Context, db *store.DB, in *EventPath) (d EventDetails, err error) {
			seq, err := in.number(ctx, db)
			if err != nil {
				return d, err
			}
			err = collect(
				func() error { d.StoredEvent, err = db.Event(ctx, seq); return err },
				func() error { d.Payload, err = db.EventPayload(ctx, seq); return err },
				func() error { d.Evidence, err = db.Evidence(ctx, seq); return err },
			)
			if person, _ := PersonOf(ctx); person.Role == Viewer {
				for i := range d.Evidence {
					d.Evidence[i].Detail = nil // an error's text may quote a payload
				}
			}
			return d, err
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

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

// number finds the number of an event that is given by number or id.
func (in EventPath) number(ctx context.Context, db *store.DB) (int64, error) {
	if seq, err := strconv.ParseInt(in.Event, 10, 64); err == nil {
		return seq, nil
	}
	if !uuid.MatchString(in.Event) {
		return 0, problem(http.StatusUnprocessableEntity, "an event is named by its number or its id, a UUID", "")
	}
	seq, err := db.EventSeq(ctx, in.Event)
	if err == nil && seq == nil {
		gone := problem(http.StatusNotFound, "there is no event "+in.Event, "It was never emitted, was rolled back, or has left the log by retention.")
		gone.Code = "TM004"
		err = gone
	}
	if err != nil {
		return 0, err
	}
	return *seq, nil
}
