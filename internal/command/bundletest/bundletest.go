// Package bundletest runs a bundle in scratch databases, as it would run in production: live, with its examples and a set of
// traps.
package bundletest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/command/bundle"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

// Options say where a bundle is tested. All but Before and Brokers are required.
type Options struct {
	Server *pgx.ConnConfig                        // a database of the server on which the scratch databases are made
	Before []bundle.Script                        // run before the bundle's own scripts
	Apply  func(context.Context, *pgx.Conn) error // registers the bundle
	Text   func(error) string                     // of an error, with what to do about it

	Brokers []string // of a Kafka for tests; none: commands are not sent over Kafka
	// Serve starts a daemon between the brokers and a database of the server.
	Serve func(ctx context.Context, database string, topics Topics) (stop func() error, err error)
}

// Report is what came of a test.
type Report struct {
	Passed     bool    `json:"passed"`
	Service    string  `json:"service"`
	Checksum   string  `json:"checksum"` // of the bundle
	PostgreSQL string  `json:"postgresql"`
	Way        string  `json:"way"` // how the commands were asked for: command_run, or command_run and kafka
	Checks     []Check `json:"checks"`
}

// Check is one part of a test.
type Check struct {
	Command  string   `json:"command"` // name, or of the whole bundle the service
	Check    string   `json:"check"`
	Outcome  string   `json:"outcome"`  // passed, failed or skipped
	Problems []string `json:"problems"` // what is wrong, or why it was skipped
}

// Outcomes of a check.
const (
	Passed  = "passed"
	Failed  = "failed"
	Skipped = "skipped"
)

// Failed counts the checks that failed.
func (r Report) Failed() (n int) {
	for _, c := range r.Checks {
		if c.Outcome == Failed {
			n++
		}
	}
	return n
}

// tester is a test under way.
type tester struct {
	Options
	bundle  *bundle.Bundle
	admin   *pgx.Conn
	name    string // of the database with the bundle, which the others are copies of
	copies  int
	report  Report
	timeout time.Duration // of a statement
}

// Run tests a bundle that lint has passed. The error is of the server; what is wrong with the bundle is in the report.
func Run(ctx context.Context, b *bundle.Bundle, o Options) (_ Report, err error) {
	t := &tester{Options: o, bundle: b, report: Report{Service: b.Service, Checksum: b.Checksum, Way: "command_run"}, timeout: patience(b)}
	if len(o.Brokers) > 0 {
		t.report.Way = "command_run and kafka"
	}
	if t.admin, err = pgx.ConnectConfig(ctx, o.Server.Copy()); err != nil {
		return t.report, err
	}
	defer t.close()
	t.report.PostgreSQL = t.admin.PgConn().ParameterStatus("server_version")
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	service := strings.ReplaceAll(b.Service, "-", "_") // so that an operator sees whose it is; a name has 63 bytes
	t.name = fmt.Sprintf("tidemark_command_test_%.20s_%s", service, hex.EncodeToString(random))
	had, err := t.roles(ctx)
	if err != nil {
		return t.report, err
	}
	defer t.dropRoles(had)
	defer t.drop(t.name)
	t.note(b.Service, "lint", nil)
	if ready, err := t.prepare(ctx); err != nil || !ready {
		return t.report, err
	}
	for _, c := range b.Commands {
		if err := t.command(ctx, c); err != nil {
			return t.report, err
		}
	}
	t.report.Passed = t.report.Failed() == 0
	return t.report, nil
}

// patience is how long the daemon waits for a statement: the command's timeout, and seven seconds.
func patience(b *bundle.Bundle) (longest time.Duration) {
	for _, c := range b.Commands {
		d, err := time.ParseDuration(c.Timeout)
		if err != nil {
			d = 10 * time.Second // the default, and that of units that Go does not know
		}
		longest = max(longest, d)
	}
	return longest + 7*time.Second
}

// note adds a check, which failed if there are problems.
func (t *tester) note(command, check string, problems []string) bool {
	outcome := Passed
	if len(problems) > 0 {
		outcome = Failed
	}
	t.report.Checks = append(t.report.Checks, Check{command, check, outcome, append([]string{}, problems...)})
	return outcome == Passed
}

func (t *tester) skip(command, check, why string) {
	t.report.Checks = append(t.report.Checks, Check{command, check, Skipped, []string{why}})
}

// prepare makes the database with the bundle, live. false: the bundle cannot be, and the report says why.
func (t *tester) prepare(ctx context.Context) (ready bool, err error) {
	if _, err := t.admin.Exec(ctx, "create database "+t.name); err != nil {
		return false, err
	}
	conn, err := t.connect(ctx, t.name)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := migrate.Up(ctx, conn); err != nil {
		return false, err
	}
	db := store.New(conn)
	changes := store.Changes{}
	if t.bundle.Role != "" {
		changes["role"] = t.bundle.Role
	}
	if _, err := db.ServiceSet(ctx, t.bundle.Service, changes, reason); err != nil { // scripts grant rights to its role
		return t.note(t.bundle.Service, "role of the service", []string{t.Text(err)}), nil
	}
	for _, s := range append(append([]bundle.Script{}, t.Before...), t.bundle.Scripts...) {
		if _, err := conn.PgConn().Exec(ctx, s.Text).ReadAll(); err != nil {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			return t.note(t.bundle.Service, s.Name, []string{place(s, err)}), nil
		}
		t.note(t.bundle.Service, s.Name, nil)
	}
	if _, err := conn.Exec(ctx, "reset all; reset role"); err != nil {
		return false, err
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"apply", func() error { return t.Apply(ctx, conn) }}, {"live", func() error { return t.live(ctx, db) }},
	} {
		if err := step.do(); ctx.Err() != nil {
			return false, ctx.Err()
		} else if err != nil {
			return t.note(t.bundle.Service, step.name, []string{t.Text(err)}), nil
		}
		t.note(t.bundle.Service, step.name, nil)
	}
	return true, nil
}

const reason = "tidemark command test"

// live turns everything on.
func (t *tester) live(ctx context.Context, db *store.DB) error {
	if err := db.StageSet(ctx, "live", reason); err != nil {
		return err
	}
	on := store.Changes{"enabled": true, "dry_run": false}
	if _, err := db.RouteSet(ctx, "results."+t.bundle.Service, on, reason, false); err != nil {
		return err
	}
	for _, gate := range []string{"commands.enabled", "commands." + t.bundle.Service + ".enabled"} {
		if err := db.GateSet(ctx, gate, true, reason); err != nil {
			return err
		}
	}
	for _, c := range t.bundle.Commands {
		if _, err := db.CommandSet(ctx, t.bundle.Service, c.Command, c.Version, on, reason); err != nil {
			return err
		}
		if asker, listed := t.asker(c); !listed {
			p := store.Producer{Producer: asker.producer, Command: &c.Command, Version: &c.Version}
			if err := db.CommandAllow(ctx, t.bundle.Service, p, reason); err != nil {
				return err
			}
		}
	}
	return nil
}

// place is an error of a script, with the line.
func place(s bundle.Script, err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err.Error()
	}
	line := ""
	if runes := []rune(s.Text); e.Position > 0 && int(e.Position) <= len(runes) {
		line = fmt.Sprintf("line %d: ", strings.Count(string(runes[:e.Position-1]), "\n")+1)
	}
	if strings.Contains(s.Text, "\n\\") || strings.HasPrefix(s.Text, "\\") {
		e.Message += " (commands of psql, such as \\i, are not understood)"
	}
	return line + e.Code + ": " + e.Message
}

func (t *tester) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	config := t.Server.Copy()
	config.Database = database
	config.RuntimeParams["application_name"] = "tidemark command test"
	config.RuntimeParams["statement_timeout"] = fmt.Sprint(t.timeout.Milliseconds())
	return pgx.ConnectConfig(ctx, config)
}

// scratch is a copy of the database with the bundle.
type scratch struct {
	*pgx.Conn
	db   *store.DB
	name string
}

// within calls work with a copy of its own.
func (t *tester) within(ctx context.Context, work func(scratch) error) (err error) {
	t.copies++
	name := fmt.Sprintf("%s_%d", t.name, t.copies)
	defer t.drop(name)
	if _, err := t.admin.Exec(ctx, "create database "+name+" template "+t.name); err != nil {
		return err
	}
	conn, err := t.connect(ctx, name)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	s := scratch{conn, store.New(conn), name}
	if err := s.db.StageSet(ctx, "live", reason); err != nil { // a copy is disarmed
		return err
	}
	return work(s)
}

const cleanUp = 30 * time.Second

func (t *tester) drop(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
	defer cancel()
	_, _ = t.admin.Exec(ctx, "drop database if exists "+name+" with (force)") // it has a name that nothing else has
}

func (t *tester) close() {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
	defer cancel()
	_ = t.admin.Close(ctx)
}

// roles are those of services that the server has.
func (t *tester) roles(ctx context.Context) (map[string]bool, error) {
	rows, _ := t.admin.Query(ctx, "select rolname::text from pg_roles") // its error is in rows too
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all, err
}

// dropRoles drops the role of the service if the test has made it. Tidemark's own roles stay: they are of the whole server.
func (t *tester) dropRoles(had map[string]bool) {
	name := t.bundle.Role
	if name == "" {
		name = "tidemark_service_" + t.bundle.Service
	}
	if had[name] {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
	defer cancel()
	_, _ = t.admin.Exec(ctx, "drop role if exists "+pgx.Identifier{name}.Sanitize()) // fails if another database uses it meanwhile
}
