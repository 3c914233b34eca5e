package main

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func eventCommand() cli.Command {
	return cli.Command{
		Use: "event", Short: "The log of events, and what became of each",
		Example: "  tidemark event list --since 1h --type order.paid\n  tidemark event show 1234",
		Sub: []cli.Command{
			eventList(),
			{
				Use: "show EVENT", Short: "Show an event, by id or number, and what became of it",
				Role: "tidemark_reader", Run: eventShow,
			},
			eventErase(),
		},
	}
}

func eventErase() cli.Command {
	e := store.Erase{}
	var before cli.Time
	return cli.Command{
		Use: "erase DOMAIN", Short: "Erase payloads of events, such as those of a person; the evidence stays", Role: "tidemark_admin", Reason: cli.NeedsReason,
		Long: `Erase the payloads of events of a domain: those of a subject, of a key, those older than a time, or what fits all that is
given. The payload becomes {"erased": TIME}; event, evidence and order stay. Dead letters lose payload and error text, and open
ones are discarded. What is still to be delivered is left and counted: run the command again once it is. Reads the
whole log. It reaches neither targets, nor backups, nor the columns key and subject_ref.`,
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&e.Subject, "subject", "", "only events whose subject_ref this is")
			flags.StringVar(&e.Key, "key", "", "only events with this ordering key")
			cli.TimeFlag(flags, &before, "before", "", "only events created before")
			flags.BoolVar(&e.DryRun, "dry-run", false, "only count")
		},
		Run: func(ctx context.Context, s *cli.Session) (err error) {
			if e.Before, err = before.At(s.Now); err != nil {
				return err
			}
			e.Domain, e.Reason = s.Arg(0), s.Reason
			all, err := s.EventsErase(ctx, e)
			if err != nil {
				return err
			}
			if all.Waiting > 0 {
				s.Note("%s left, still to be delivered: tidemark pending list; tidemark worker list", cli.Count(int(all.Waiting), "event"))
			}
			return s.Result(all, "%s and %s %serased", cli.Count(int(all.Events), "event"), cli.Count(int(all.DeadLetters), "dead letter"), cli.Choose(e.DryRun, "would be ", ""))
		},
	}
}

func eventList() cli.Command {
	var f store.EventFilter
	var window cli.Window
	var limit int
	return cli.Command{
		Use: "list", Short: "List events, newest first, without their payloads", Role: "tidemark_reader",
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.Domain, "domain", "", "only this domain")
			flags.StringVar(&f.Type, "type", "", "only this type")
			flags.StringVar(&f.Stream, "stream", "", "only this stream")
			flags.StringVar(&f.Key, "key", "", "only this ordering key")
			flags.StringVar(&f.Subject, "subject", "", "only events whose subject_ref this is")
			window.Add(flags, "emitted", "")
			flags.Int64Var(&f.BeforeSeq, "before", 0, "only numbers below this one: the next page")
			cli.Limit(flags, &limit, 20)
		},
		Run: func(ctx context.Context, s *cli.Session) (err error) {
			if f.BeforeSeq < 0 {
				return cli.Usagef("--before must not be negative")
			}
			if f.Since, f.Until, err = window.Times(s.Now); err != nil {
				return err
			}
			events, more, err := cli.Page(limit, func(limit int) ([]store.StoredEvent, error) {
				f.Limit = limit
				return s.Events(ctx, f)
			})
			if err != nil {
				return err
			}
			if more {
				defer s.Note("there are more: --before %d shows the next page, --limit 0 all", events[limit-1].Seq)
			}
			return cli.Table(s.Printer, "no events", events, "SEQ|EVENT|CREATED|TYPE|KEY|SEVERITY|ACTOR",
				func(e store.StoredEvent) cli.Row {
					return cli.Row{e.Seq, e.EventID, s.Age(e.CreatedAt), e.Domain + "/" + e.Type, e.Key, e.Severity, e.Actor}
				})
		},
	}
}

func eventShow(ctx context.Context, s *cli.Session) error {
	seq, err := eventNumber(ctx, s, s.Arg(0))
	if err != nil {
		return err
	}
	d, err := s.EventDetails(ctx, seq)
	if err != nil {
		return err
	}
	if s.JSON {
		s.Object(d)
		return nil
	}
	subject := strings.TrimSpace(cli.Cell(d.SubjectTable) + " " + cli.Cell(d.SubjectRef))
	s.Facts("event", d.EventID, "number", d.Seq, "type", d.Domain+"/"+d.Type, "stream", d.Stream,
		"key", d.Key, "lane", d.Lane,
		"severity", d.Severity, "subject", subject, "idempotency key", d.IdempotencyKey, "trace", d.Trace, "actor", d.Actor,
		"emitted by", d.EmittedBy, "occurred", d.OccurredAt, "created", s.At(d.CreatedAt), "payload", cli.Or(d.Payload, cli.NoPayload))
	if len(d.Evidence) > 0 {
		s.Line("")
	}
	return cli.Table(s.Printer, "no worker has decided it yet", d.Evidence,
		"WORKER|ROUTE|ATTEMPT|OUTCOME|DECIDED|REASON|DETAIL", func(a store.Attempt) cli.Row {
			return cli.Row{a.Worker, cli.Or(a.RouteCode, "-"), a.AttemptNo, a.Outcome, s.Age(a.DecidedAt), a.Reason, a.Detail}
		})
}

func whyCommand() cli.Command {
	return cli.Command{
		Use: "why EVENT ROUTE", Short: "Say why a route delivered an event or did not, and what would change it", Role: "tidemark_reader",
		Long: `Say why a route delivered an event, given by its id or number, or did not: in one sentence, with the command that shows
more or changes it.`,
		Example: "  tidemark why 1234 billing",
		Run: func(ctx context.Context, s *cli.Session) error {
			seq, err := eventNumber(ctx, s, s.Arg(0))
			if err != nil {
				return err
			}
			e, err := s.Event(ctx, seq)
			if err != nil {
				return err
			}
			w, err := s.Why(ctx, e.EventID, s.Arg(1))
			if err != nil {
				return err
			}
			return s.Show(w, "state", w.State, "why", w.Sentence, "next", w.Command)
		},
	}
}

func eventNumber(ctx context.Context, s *cli.Session, name string) (int64, error) {
	seq, err := s.EventNumber(ctx, name)
	return seq, cli.EventName(err, name)
}
