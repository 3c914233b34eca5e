package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func newEvent(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "event", Short: "Look into the log of events"}
	cmd.AddCommand(newEventList(a), newEventShow(a))
	return cmd
}

func newEventList(a *app) *cobra.Command {
	var f store.EventFilter
	var since, until string
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "list",
		Short: "List events, newest first, without their payloads",
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) (err error) {
			if f.Since, err = when("since", since, s.now); err != nil {
				return err
			}
			if f.Until, err = when("until", until, s.now); err != nil {
				return err
			}
			return eventList(ctx, s, f)
		}),
	})
	flags := cmd.Flags()
	flags.StringVar(&f.Domain, "domain", "", "only this domain")
	flags.StringVar(&f.Type, "type", "", "only this type")
	flags.StringVar(&f.Stream, "stream", "", "only this stream")
	flags.StringVar(&f.Key, "key", "", "only this ordering key")
	flags.StringVar(&since, "since", "", "emitted at this time or later: RFC 3339, or how long ago (90m, 24h, 7d)")
	flags.StringVar(&until, "until", "", "emitted before this time")
	flags.Int64Var(&f.BeforeSeq, "before", 0, "numbers below this one: the next page")
	flags.IntVar(&f.Limit, "limit", 20, "at most so many; 0: all")
	return cmd
}

func eventList(ctx context.Context, s *session, f store.EventFilter) error {
	if f.Limit < 0 || f.BeforeSeq < 0 {
		return usagef("--limit and --before must not be negative")
	}
	limit := f.Limit
	if limit > 0 {
		f.Limit++ // one more tells whether there is more
	}
	events, err := s.Events(ctx, f)
	if err != nil {
		return err
	}
	more := limit > 0 && len(events) > limit
	if more {
		events = events[:limit]
	}
	type e = store.StoredEvent
	err = rows(s.printer, "no events", events,
		column[e]{"SEQ", func(e e) string { return number(e.Seq) }},
		column[e]{"EVENT", func(e e) string { return e.EventID }},
		column[e]{"CREATED", func(e e) string { return s.age(e.CreatedAt) }},
		column[e]{"TYPE", func(e e) string { return e.Domain + "/" + e.Type }},
		column[e]{"KEY", func(e e) string { return text(e.Key) }},
		column[e]{"SEVERITY", func(e e) string { return e.Severity }},
		column[e]{"ACTOR", func(e e) string { return e.Actor }})
	if err == nil && more {
		s.note("there are more: --before %d shows the next page, --limit 0 all", events[limit-1].Seq)
	}
	return err
}

func newEventShow(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "show EVENT",
		Short: "Show an event, given by its id or number, and what became of it",
		RunE:  a.withSchema(eventShow),
	})
}

// eventDetails is the JSON of `event show`.
type eventDetails struct {
	store.StoredEvent
	Payload  json.RawMessage `json:"payload"` // null: not for this role
	Evidence []store.Attempt `json:"evidence"`
}

func eventShow(ctx context.Context, s *session, args []string) error {
	seq, err := eventNumber(ctx, s, args[0])
	if err != nil {
		return err
	}
	event, err := s.Event(ctx, seq)
	if err != nil {
		return err
	}
	payload, err := s.EventPayload(ctx, seq)
	if err != nil {
		return err
	}
	evidence, err := s.Evidence(ctx, seq)
	if err != nil {
		return err
	}
	if s.json {
		return s.object(eventDetails{event, payload, evidence})
	}
	shown := string(payload)
	if payload == nil {
		shown = "(not for your role, which is not in tidemark_admin)"
	}
	err = s.facts(
		fact{"event", event.EventID}, fact{"number", number(event.Seq)}, fact{"type", event.Domain + "/" + event.Type},
		fact{"stream", text(event.Stream)}, fact{"key", text(event.Key)}, fact{"lane", event.Lane},
		fact{"severity", event.Severity}, fact{"subject", subject(event)},
		fact{"idempotency key", text(event.IdempotencyKey)}, fact{"trace", text(event.Trace)}, fact{"actor", event.Actor},
		fact{"emitted by", event.EmittedBy},
		fact{"occurred", utc(event.OccurredAt)}, fact{"created", utc(event.CreatedAt) + ", " + s.age(event.CreatedAt)},
		fact{"payload", shown})
	if err != nil {
		return err
	}
	if len(evidence) > 0 {
		if err := s.linef(""); err != nil {
			return err
		}
	}
	type e = store.Attempt
	return rows(s.printer, "no worker has decided it yet", evidence,
		column[e]{"WORKER", func(e e) string { return e.Worker }},
		column[e]{"ROUTE", func(e e) string { return firstOf(text(e.RouteCode), "-") }},
		column[e]{"ATTEMPT", func(e e) string { return number(e.AttemptNo) }},
		column[e]{"OUTCOME", func(e e) string { return e.Outcome }},
		column[e]{"DECIDED", func(e e) string { return s.age(e.DecidedAt) }},
		column[e]{"REASON", func(e e) string { return text(e.Reason) }},
		column[e]{"DETAIL", func(e e) string { return text(e.Detail) }})
}

func subject(e store.StoredEvent) string {
	if e.SubjectTable != nil && e.SubjectRef != nil {
		return *e.SubjectTable + " " + *e.SubjectRef
	}
	return text(e.SubjectTable) + text(e.SubjectRef)
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

func eventNumber(ctx context.Context, s *session, id string) (int64, error) {
	if seq, err := strconv.ParseInt(id, 10, 64); err == nil {
		return seq, nil
	}
	if !uuid.MatchString(id) {
		return 0, usagef("%q is neither the id of an event (a uuid) nor its number", id)
	}
	seq, err := s.EventSeq(ctx, id)
	if err == nil && seq == nil {
		err = &tidemark.Error{
			Code: "TM004", Message: "there is no event " + id,
			Hint: "It was never emitted, was rolled back, or has left the log by retention.",
		}
	}
	if err != nil {
		return 0, err
	}
	return *seq, nil
}
