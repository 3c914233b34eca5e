package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/command/bundle"
	"github.com/tidemarkhq/tidemark/internal/command/bundletest"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func commandApply() cli.Command {
	var o applyOptions
	var file, tested string
	return cli.Command{
		Use: "apply DIR", Short: "Register a service's bundle; what is new is off and in dry run, unless --live",
		Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Long: `Register a service's bundle in one transaction: the service, its commands and the producers that may ask. It prints what
changes. A new command is off and in dry run; switches that an operator has set stay as they are. Applying the same bundle
again changes nothing.

It also makes the routes results.SERVICE and dlq.SERVICE, off and in dry run, which take the results and the dead letters to
Kafka: to the topics and by the connection of the daemon's configuration (commands.results, commands.dead_letters,
commands.connection). Routes of these names that are there stay as they are.

--tested takes the report of tidemark command test -o json of the same bundle; the registry then says that these commands were
tested. --live turns all commands of the bundle on and live. It wants such a report, or --reason; and what tidemark command
enable --live wants.

It refuses a bundle that does not pass lint, and schemas that would break the users of a command that is enabled. A registered
command that the bundle does not have stays, with a remark. The files of sql/ are not run: functions belong to the service's
own migrations.`,
		Example: "  tidemark command apply billing --check\n  tidemark command apply billing --reason 'release 12'\n" +
			"  tidemark command apply billing --live --tested billing.tested.json",
		Flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&o.check, "check", false, "change nothing, print what would change, and end with status 1 if something would")
			flags.BoolVar(&o.live, "live", false, "turn all commands of the bundle on and live")
			flags.StringVar(&tested, "tested", "", "the report of tidemark command test -o json: a `FILE`")
			cli.ConfigFlag(flags, &file)
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			b, err := soundBundle(s.Arg(0))
			if err != nil {
				return err
			}
			if tested != "" {
				if err := wasTested(tested, b); err != nil {
					return err
				}
				o.tested = b.Checksum
			}
			c, err := s.LoadConfig(file)
			if err != nil {
				return err
			}
			if err := apply(ctx, s, b, c.Commands, o); err != nil || !o.live || o.check {
				return err
			}
			return sayWhatIsMissing(ctx, s, c, b.Service)
		},
	}
}

type applyOptions struct {
	check, live bool
	tested      string // checksum of the bundle that passed a test; empty: none is known
}

// wasTested reads the report of a test, which must be of this very bundle.
func wasTested(file string, b *bundle.Bundle) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const how = "tidemark command test DIR -o json > FILE"
	var r bundletest.Report
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(&r); {
	case err != nil || decoder.More():
		return cli.Hint(errors.New(file+" is not the report of tidemark command test -o json"), how)
	case r.Service != b.Service || r.Checksum != b.Checksum:
		return cli.Hint(fmt.Errorf("%s is the report of another state of the bundle: of %s, checksum %.12s, and this one has %.12s", file, r.Service, r.Checksum, b.Checksum), how)
	case !r.Passed:
		return cli.Hint(fmt.Errorf("%s says that the bundle failed: %s", file, cli.Count(r.Failed(), "check")), "Correct the bundle, then "+how)
	}
	return nil
}

// soundBundle is a bundle without problems.
func soundBundle(dir string) (*bundle.Bundle, error) {
	b, problems, err := bundle.Read(dir)
	if err == nil && len(problems) > 0 {
		err = cli.Hint(fmt.Errorf("the bundle %s has %s: %s", dir, cli.Count(len(problems), "problem"), problems[0]), "tidemark command lint "+dir+" lists all.")
	}
	return b, err
}

func apply(ctx context.Context, s *cli.Session, b *bundle.Bundle, c config.Commands, o applyOptions) error {
	var a applying
	_, err := cli.InTx(ctx, s, func(db *store.DB) (struct{}, error) {
		a = applying{db: db, bundle: b, config: c, options: o, reason: s.Reason}
		if err := a.all(ctx); err != nil {
			return struct{}{}, err
		}
		if o.check || len(a.changes) == 0 {
			return struct{}{}, cli.ErrRollback
		}
		return struct{}{}, nil
	})
	if err != nil {
		return err
	}
	for _, name := range a.left {
		s.Note("%s is registered and not in the bundle: tidemark command disable %s", name, name)
	}
	err = cli.Table(s.Printer, "nothing changes", a.changes, "CHANGE|WHAT|TO", func(c applied) cli.Row {
		return cli.Row{c.Change, c.What, cli.Or(c.To, "-")}
	})
	switch {
	case err != nil || len(a.changes) == 0:
		return err
	case o.check && len(a.missing) > 0:
		return cli.ExitWith(cli.StatusFailed, cli.Hint(fmt.Errorf("apply would fail: %s", strings.Join(a.missing, "; ")),
			"Functions are the service's own migrations: run these first, such as the files of the bundle's folder sql."))
	case o.check:
		return cli.ExitWith(cli.StatusFailed, fmt.Errorf("%s would be made", cli.Count(len(a.changes), "change")))
	case len(a.added) > 0 && !o.live && !s.JSON:
		s.Hint("What is new is off and in dry run: tidemark command enable %s.", a.added[0])
	}
	return nil
}

// registerForTest registers a bundle in a scratch database.
func registerForTest(ctx context.Context, conn *pgx.Conn, b *bundle.Bundle) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		a := applying{db: store.New(tx), bundle: b, config: config.Default().Commands, reason: "tidemark command test"}
		return a.all(ctx)
	})
}

// applied is a change of the registry.
type applied struct {
	Change string `json:"change"` // register, set, allow, disallow or live
	What   string `json:"what"`
	To     string `json:"to"`
}

// applying compares a bundle with the registry, within a transaction that it changes.
type applying struct {
	db      *store.DB
	bundle  *bundle.Bundle
	config  config.Commands
	options applyOptions
	reason  string
	changes []applied
	left    []string // registered commands that the bundle does not have
	added   []string // commands that are new
	missing []string // of check: functions that cannot serve, or not yet
}

func (a *applying) all(ctx context.Context) error {
	if err := a.service(ctx); err != nil {
		return err
	}
	was, err := a.db.Commands(ctx, a.bundle.Service)
	if err != nil {
		return err
	}
	for _, c := range a.bundle.Commands {
		i := slices.IndexFunc(was, func(r store.Command) bool { return r.Command == c.Command && r.Version == c.Version })
		if i < 0 {
			a.added = append(a.added, fmt.Sprintf("%s.%s/v%d", a.bundle.Service, c.Command, c.Version))
			err = a.command(ctx, c, nil)
		} else {
			err = a.command(ctx, c, &was[i])
			was = slices.Delete(was, i, i+1)
		}
		if err != nil {
			return err
		}
	}
	for _, c := range was {
		if c.Enabled {
			a.left = append(a.left, c.Name)
		}
	}
	if err := a.producers(ctx); err != nil {
		return err
	}
	if err := a.routes(ctx); err != nil || !a.options.live {
		return err
	}
	return a.live(ctx)
}

// live turns the commands of the bundle on, and ends their dry run.
func (a *applying) live(ctx context.Context) error {
	for _, c := range a.bundle.Commands {
		is, err := a.db.Command(ctx, a.bundle.Name(c))
		if len(a.missing) > 0 && errors.Is(err, tidemark.ErrNotFound) {
			continue // of check
		}
		if err != nil {
			return err
		}
		if is.Enabled && !is.DryRun {
			continue
		}
		if is, err = goLive(ctx, a.db, is, a.reason); err != nil {
			return err
		}
		a.note("live", "command "+is.Name, testedText(is))
	}
	return nil
}

func testedText(c store.Command) string {
	if c.Tested == nil {
		return "not tested"
	}
	return fmt.Sprintf("tested as %.12s", *c.Tested)
}

// goLive turns a command on and live, which wants a test of it as it is registered, or a reason.
func goLive(ctx context.Context, db *store.DB, c store.Command, reason string) (store.Command, error) {
	if strings.TrimSpace(reason) == "" {
		if c.Tested == nil {
			return c, cli.Hint(cli.Usagef("%s was not tested as it is registered: give a report of its bundle's test, or --reason", c.Name),
				"tidemark command test DIR -o json > FILE; then tidemark command apply DIR --tested FILE --live")
		}
		reason = testedText(c)
	}
	return db.CommandSet(ctx, c.Service, c.Command, c.Version, store.Changes{"enabled": true, "dry_run": false}, reason)
}

func (a *applying) service(ctx context.Context) error {
	all, err := a.db.Services(ctx)
	if err != nil {
		return err
	}
	changes := store.Changes{"unknown_command": a.bundle.UnknownCommand, "description": a.bundle.Description}
	if a.bundle.Role != "" {
		changes["role"] = a.bundle.Role
	}
	i := slices.IndexFunc(all, func(s store.Service) bool { return s.Service == a.bundle.Service })
	is, err := a.db.ServiceSet(ctx, a.bundle.Service, changes, a.reason)
	if err != nil {
		return err
	}
	if i < 0 {
		a.note("register", "service "+is.Service, "role "+is.Role)
		return nil
	}
	return a.compare("service "+is.Service, all[i], is)
}

// routes makes those that are missing by which results and dead letters leave.
func (a *applying) routes(ctx context.Context) error {
	all, err := a.db.Routes(ctx, store.RouteFilter{})
	if err != nil {
		return err
	}
	for _, r := range []struct{ route, events, topic, format, what string }{
		{"results.", "result.", a.config.Results, "payload", "Results of the commands of "},
		{"dlq.", "dead_letter.", a.config.DeadLetters, "raw", "Dead letters of the commands of "},
	} {
		code, topic := r.route+a.bundle.Service, config.ServiceTopic(r.topic, a.bundle.Service)
		if slices.ContainsFunc(all, func(r store.Route) bool { return r.RouteCode == code }) {
			continue
		}
		options := map[string]string{"format": r.format}
		if a.config.Connection != "" {
			options["connection"] = a.config.Connection
		}
		if _, err := a.db.RouteSet(ctx, code, store.Changes{
			"domain": "commands", "type": r.events + a.bundle.Service, "target_kind": "kafka", "target_ref": topic, "options": options,
			"ordering": "key", "description": r.what + a.bundle.Service,
		}, a.reason, true); err != nil {
			return err
		}
		a.note("register", "route "+code, "kafka "+topic)
	}
	return nil
}

func (a *applying) note(change, what, to string) {
	a.changes = append(a.changes, applied{change, what, to})
}

// compare notes the columns in which two states of a row differ.
func (a *applying) compare(what string, was, is any) error {
	before, err := columns(was)
	if err != nil {
		return err
	}
	after, err := columns(is)
	if err != nil {
		return err
	}
	for _, column := range slices.Sorted(maps.Keys(after)) {
		if string(before[column]) != string(after[column]) {
			a.note("set", what+" "+column, cli.Cut(strings.Trim(string(after[column]), `"`), 60))
		}
	}
	return nil
}

func columns(row any) (all map[string]json.RawMessage, err error) {
	text, err := json.Marshal(row)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

func (a *applying) command(ctx context.Context, c bundle.Command, was *store.Command) error {
	name := a.bundle.Name(c)
	if was != nil && was.Enabled {
		if breaks := c.Follows(was.SchemaVersion, was.PayloadSchema, notNull(was.ResultSchema)); len(breaks) > 0 {
			return cli.Hint(fmt.Errorf("%s is enabled, and the bundle breaks those who use it: %s", name, strings.Join(breaks, "; ")),
				"Keep the version as it is, and add a new version of the command; or disable it first.")
		}
	}
	changes := store.Changes{
		"schema_version": len(c.Payloads), "payload_schema": c.Payloads[len(c.Payloads)-1], "result_schema": c.Results[len(c.Results)-1],
		"timeout": cmp.Or(c.Timeout, "10 seconds"), "retention": cmp.Or(c.Retention, "30 days"), "retry_policy": nil,
		"terminal": append([]string{}, c.Terminal...), "when_disabled": c.WhenDisabled, "description": c.Description,
		"function": nil, "statement": nil, "parameters": map[string]string{},
	}
	if c.RetryPolicy != nil {
		changes["retry_policy"] = c.RetryPolicy
	}
	if c.Parameters != nil {
		changes["parameters"] = c.Parameters
	}
	if a.options.tested != "" {
		changes["tested"] = a.options.tested
	}
	body := "function " + c.Function
	if c.Function != "" {
		changes["function"] = c.Function
	} else {
		changes["statement"], body = c.Statement, "a statement"
	}
	if a.options.check && c.Function != "" {
		problem, err := a.db.CommandTargetProblem(ctx, c.Function)
		if err != nil {
			return err
		}
		if problem != "" {
			a.missing = append(a.missing, "command "+name+": "+problem)
			a.note(cli.Choose(was == nil, "register", "set"), "command "+name, body+", which cannot serve yet")
			return nil
		}
	}
	is, err := a.db.CommandSet(ctx, a.bundle.Service, c.Command, c.Version, changes, a.reason)
	switch {
	case err != nil:
		return err
	case was == nil:
		a.note("register", "command "+name, body)
		return nil
	}
	return a.compare("command "+name, *was, is)
}

func notNull(document json.RawMessage) json.RawMessage {
	if string(document) == "null" {
		return nil
	}
	return document
}

// producers makes the allowlist that of the bundle.
func (a *applying) producers(ctx context.Context) error {
	was, err := a.db.Producers(ctx, a.bundle.Service)
	if err != nil {
		return err
	}
	for _, p := range a.bundle.Producers {
		wanted := store.Producer{Producer: p.Producer, Tenants: p.Tenants}
		if p.Command != "" {
			wanted.Command = &p.Command
		}
		if p.Version > 0 {
			wanted.Version = &p.Version
		}
		i := slices.IndexFunc(was, func(r store.Producer) bool { return allowed(r) == allowed(wanted) })
		same := i >= 0 && (was[i].Tenants == nil) == (wanted.Tenants == nil) && slices.Equal(was[i].Tenants, wanted.Tenants)
		if i >= 0 {
			was = slices.Delete(was, i, i+1)
		}
		if same {
			continue
		}
		a.note("allow", allowed(wanted), cli.Choose(wanted.Tenants == nil, "without a tenant", "tenants "+strings.Join(wanted.Tenants, ", ")))
		if len(a.missing) > 0 { // a command that it names may not be registered
			continue
		}
		if err := a.db.CommandAllow(ctx, a.bundle.Service, wanted, a.reason); err != nil {
			return err
		}
	}
	for _, p := range was {
		if err := a.db.CommandDisallow(ctx, a.bundle.Service, p, a.reason); err != nil {
			return err
		}
		a.note("disallow", allowed(p), "")
	}
	return nil
}

// allowed names a row of the allowlist.
func allowed(p store.Producer) string {
	text := "producer " + p.Producer
	if p.Command != nil {
		text += " for " + *p.Command
	}
	if p.Version != nil {
		text += fmt.Sprintf("/v%d", *p.Version)
	}
	return text
}
