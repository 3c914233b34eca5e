package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/intake"
	"github.com/tidemarkhq/tidemark/internal/oneline"
)

const aboutEmit = `Emit one event, described by flags, or many, one JSON object a line.

A line is an object with the fields domain and type, and any of payload, key, stream, lane, severity,
subject_table, subject_ref, idempotency_key, trace, actor, occurred_at. With --cloudevents it is a
CloudEvent 1.0: type, data → payload, source → actor, subject → subject_ref, time → occurred_at,
partitionkey → key, traceparent → trace, source and id together → idempotency_key; the domain is the
extension tidemarkdomain, else --domain. A line has at most 1 MiB.

Lines are emitted in one transaction: a line that is refused leaves nothing behind. With --continue each
batch of up to 1,000 lines is a transaction, refused lines are reported, and the exit status is 1.

Of a type that is not registered or not enabled nothing is stored, which is reported and is no error;
with --strict it is.`

// emitFlags are the flags of `tidemark emit` beside the fields of an event.
type emitFlags struct {
	file             string
	ndjson           bool
	cloudEvents      bool
	ignoreAttributes bool
	carryOn          bool
	strict           bool
}

func newEmit(a *app) *cobra.Command {
	var f emitFlags
	cmd := needs("tidemark_emitter", &cobra.Command{
		Use:   "emit",
		Short: "Emit an event, or many from a file or stdin",
		Long:  aboutEmit,
		Example: `  tidemark emit --strict --domain shop --type order.paid --payload '{"id": 7}' --key 7
  tidemark emit --ndjson < events.ndjson
  tidemark emit -f events.ndjson --continue
  tidemark emit -f event.json --cloudevents --domain shop`,
	})
	flags := cmd.Flags()
	flags.String("domain", "", "domain of the type")
	flags.String("type", "", "type of the event")
	flags.String("payload", "", "JSON object; default {}")
	flags.String("key", "", "ordering key")
	flags.String("stream", "", "free grouping inside the type")
	flags.String("lane", "", "immediate (default) or batch")
	flags.String("severity", "", "info (default), warning, high or critical")
	flags.String("subject-table", "", "table of the row that the event is about")
	flags.String("subject-ref", "", "primary key of that row")
	flags.String("idempotency-key", "", "a second emit with it in the domain stores nothing and gives the first event's id")
	flags.String("trace", "", "W3C traceparent")
	flags.String("actor", "", "who did it; default: the role that logs in")
	flags.String("occurred-at", "", "when it happened, RFC 3339; default: now")
	flags.BoolVar(&f.strict, "strict", false, "refuse a type that is not registered or not enabled")
	flags.StringVarP(&f.file, "file", "f", "", "read events from this file, one a line; - is stdin")
	flags.BoolVar(&f.ndjson, "ndjson", false, "read events from stdin, one a line")
	flags.BoolVar(&f.cloudEvents, "cloudevents", false, "they are CloudEvents; a single one may stand on many lines")
	flags.BoolVar(&f.ignoreAttributes, "ignore-attributes", false, "drop attributes of CloudEvents that an event has no place for")
	flags.BoolVar(&f.carryOn, "continue", false, "emit the good lines and report the others")
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, _ []string) error {
		if f.file == "" && !f.ndjson && !f.cloudEvents {
			if f.carryOn || f.ignoreAttributes {
				return usagef("--continue and --ignore-attributes are for events that are read, with -f, --ndjson or --cloudevents")
			}
			return emitOne(ctx, s, flags, f.strict)
		}
		return emitFile(ctx, s, flags, f)
	})
	return cmd
}

// fieldFlags are the flags that describe an event; the fields have the same names with "_".
var fieldFlags = []string{
	"domain", "type", "payload", "key", "stream", "lane", "severity", "subject-table", "subject-ref", "idempotency-key",
	"trace", "actor", "occurred-at",
}

func emitOne(ctx context.Context, s *session, flags *pflag.FlagSet, strict bool) error {
	if !flags.Changed("domain") || !flags.Changed("type") {
		return usagef("give --domain and --type, or read events with -f FILE or --ndjson")
	}
	fields := map[string]any{}
	for _, flag := range fieldFlags {
		if !flags.Changed(flag) {
			continue
		}
		value, _ := flags.GetString(flag)
		if flag != "payload" {
			fields[strings.ReplaceAll(flag, "-", "_")] = value
			continue
		}
		if !json.Valid([]byte(value)) {
			return badEvent(errors.New("payload is not JSON"))
		}
		fields["payload"] = json.RawMessage(value)
	}
	line, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	event, err := intake.ParseEvent(line)
	if err != nil {
		return badEvent(err)
	}
	return emitEvent(ctx, s, event, strict)
}

func emitEvent(ctx context.Context, s *session, event tidemark.Event, strict bool) error {
	emit := s.Emit
	if strict {
		emit = s.EmitStrict
	}
	id, err := emit(ctx, event)
	if err != nil {
		return err
	}
	if id == nil {
		s.note("nothing was stored: the type %s/%s is not registered or not enabled", event.Domain, event.Type)
		fmt.Fprintf(s.err, "hint: tidemark type set %s %s\n", oneline.Clean(event.Domain), oneline.Clean(event.Type))
	}
	switch {
	case s.json:
		return s.object(struct {
			EventID *string `json:"event_id"`
		}{id})
	case id != nil:
		return s.linef("%s", *id)
	}
	return nil
}

func emitFile(ctx context.Context, s *session, flags *pflag.FlagSet, f emitFlags) error {
	for _, flag := range fieldFlags {
		if flags.Changed(flag) && !(flag == "domain" && f.cloudEvents) {
			return usagef("--%s is for one event, and these are read", flag)
		}
	}
	if f.ignoreAttributes && !f.cloudEvents {
		return usagef("--ignore-attributes is for --cloudevents")
	}
	if f.ndjson && f.file != "" && f.file != "-" {
		return usagef("--ndjson reads stdin, and -f %s a file: give one of them", f.file)
	}
	input := s.in
	if f.file != "" && f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return err
		}
		defer file.Close()
		input = file
	}
	return emitLines(ctx, s, f.reader(flags, input), f)
}

func (f emitFlags) reader(flags *pflag.FlagSet, input io.Reader) *intake.Reader {
	if !f.cloudEvents {
		return intake.NewReader(input)
	}
	domain, _ := flags.GetString("domain")
	return intake.NewCloudEvents(input, intake.CloudEvents{Domain: domain, IgnoreAttributes: f.ignoreAttributes})
}

// badEvent gives what is wrong with an event that did not get as far as the database
// the code that the database has for it.
func badEvent(err error) error {
	refused := &tidemark.Error{Code: "TM002", Message: err.Error(), Hint: "See tidemark emit --help."}
	if errors.Is(err, intake.ErrAttribute) {
		refused.Hint = "--ignore-attributes drops such attributes."
	}
	return refused
}
