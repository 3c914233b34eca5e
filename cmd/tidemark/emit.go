package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/intake"
)

const aboutEmit = `Emit one event, described by flags, or many, one JSON object a line.

A line is an object with the fields domain and type, and any of payload, key, stream, lane, severity, subject_table,
subject_ref, idempotency_key, trace, actor, occurred_at. With --cloudevents it is a CloudEvent 1.0: type, data →
payload, source → actor, subject → subject_ref, time → occurred_at, partitionkey → key, traceparent → trace, source and
id together → idempotency_key; the domain is the extension tidemarkdomain, else --domain. A line has at most 1 MiB.

All lines are one transaction: a refused line leaves nothing behind. With --continue each batch of up to 1,000 lines is
a transaction, refused lines are reported, and the exit status is 1.

Events of a type that is not registered or not enabled are not stored; that is reported, and is an error only with
--strict.`

func emitCommand() cli.Command {
	var f emitFlags
	return cli.Command{
		Use: "emit", Short: "Emit an event, or many from a file or stdin", Role: "tidemark_emitter", Long: aboutEmit,
		Example: `  tidemark emit --strict --domain shop --type order.paid --payload '{"id": 7}' --key 7
  tidemark emit --ndjson < events.ndjson
  tidemark emit -f events.ndjson --continue
  tidemark emit -f event.json --cloudevents --domain shop`,
		Flags: func(flags *pflag.FlagSet) {
			for _, field := range fieldFlags {
				flags.String(field.flag, "", field.usage)
			}
			flags.BoolVar(&f.strict, "strict", false, "refuse a type that is not registered or not enabled")
			flags.StringVarP(&f.file, "file", "f", "", "read events from this `FILE`, one a line; - is stdin")
			flags.BoolVar(&f.ndjson, "ndjson", false, "read events from stdin, one a line")
			flags.BoolVar(&f.cloudEvents, "cloudevents", false, "they are CloudEvents; a single one may span lines")
			flags.BoolVar(&f.ignoreAttributes, "ignore-attributes", false,
				"drop attributes of CloudEvents that an event cannot hold")
			flags.BoolVar(&f.carryOn, "continue", false, "emit the good lines and report the others")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if f.file == "" && !f.ndjson && !f.cloudEvents {
				if f.carryOn || f.ignoreAttributes {
					return cli.Usagef("--continue and --ignore-attributes are for events that are read, with -f, --ndjson or --cloudevents")
				}
				return emitOne(ctx, s, f.strict)
			}
			return emitFile(ctx, s, f)
		},
	}
}

// fieldFlags describe an event. The fields have the same names with "_".
var fieldFlags = []struct{ flag, usage string }{
	{"domain", "domain of the type"},
	{"type", "type of the event"},
	{"payload", "JSON object; default {}"},
	{"key", "ordering key"},
	{"stream", "free grouping inside the type"},
	{"lane", "immediate (default) or batch"},
	{"severity", "info (default), warning, high or critical"},
	{"subject-table", "table of the row that the event is about"},
	{"subject-ref", "primary key of that row"},
	{"idempotency-key", "a second emit with it in the domain stores nothing and returns the first event's id"},
	{"trace", "W3C traceparent"},
	{"actor", "who did it; default: the role that logs in"},
	{"occurred-at", "when it happened, RFC 3339; default: now"},
}

func emitOne(ctx context.Context, s *cli.Session, strict bool) error {
	if s.NumGiven("domain", "type") < 2 {
		return cli.Usagef("give --domain and --type, or read events with -f FILE or --ndjson")
	}
	fields := map[string]any{}
	for _, field := range fieldFlags {
		if !s.Given(field.flag) {
			continue
		}
		value, _ := s.Flags.GetString(field.flag)
		if field.flag != "payload" {
			fields[strings.ReplaceAll(field.flag, "-", "_")] = value
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

func emitEvent(ctx context.Context, s *cli.Session, event tidemark.Event, strict bool) error {
	emit := tidemark.EmitIfRegistered
	if strict {
		emit = tidemark.Emit
	}
	id, err := emit(ctx, s.Conn, event)
	if err != nil {
		return err
	}
	if id == "" {
		s.Note("nothing was stored: the type %s/%s is not registered or not enabled", event.Domain, event.Type)
		s.Hint("tidemark type set %s %s", event.Domain, event.Type)
		if !s.JSON {
			return nil
		}
	}
	return s.Result(cli.Fields{"event_id", orNull(id)}, "%s", id)
}

func emitFile(ctx context.Context, s *cli.Session, f emitFlags) error {
	for _, field := range fieldFlags {
		if s.Given(field.flag) && !(field.flag == "domain" && f.cloudEvents) {
			return cli.Usagef("--%s is for one event given by flags, not for events that are read", field.flag)
		}
	}
	if f.ignoreAttributes && !f.cloudEvents {
		return cli.Usagef("--ignore-attributes is for --cloudevents")
	}
	if f.ndjson && f.file != "" && f.file != "-" {
		return cli.Usagef("--ndjson reads stdin, and -f %s a file: give one of them", f.file)
	}
	input := s.In
	if f.file != "" && f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return err
		}
		defer file.Close()
		input = file
	}
	return emitLines(ctx, s, f.reader(s.Flags, input), f)
}

func (f emitFlags) reader(flags *pflag.FlagSet, input io.Reader) *intake.Reader {
	if !f.cloudEvents {
		return intake.NewReader(input)
	}
	domain, _ := flags.GetString("domain")
	return intake.NewCloudEvents(input, intake.CloudEvents{Domain: domain, IgnoreAttributes: f.ignoreAttributes})
}
