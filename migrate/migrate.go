// Package migrate installs Tidemark's schema and keeps it up to date: migrations run once, in order, and functions,
// triggers and views are re-created when they changed. Both happen in one transaction, so that no application ever meets
// functions of one build on tables of another. The first migration, which makes the schema, commits before.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Installers wait for each other, in the same database by lock and the first time, when there is no table to lock, by
// the unique indexes of the catalogs: the second one waits where it makes the same role or schema. Not by an advisory
// lock, which any login could hold. Readers of the table go on.
const (
	lock = "lock table tidemark.migration in exclusive mode"
	// patience is how long an installer waits for another one.
	patience = "set local lock_timeout = '60s'"
	// haste is how long it waits for a table of which writers and readers may be at work: what comes behind it waits too.
	haste = "set local lock_timeout = '3s'"
	// writers stops emits and captures before a migration has locked anything else, so that one that waits holds nothing of
	// what a migration wants. They take these tables in several orders. What is waited for with the first one locked is
	// less than a second in all: the installer gives up before PostgreSQL looks, after deadlock_timeout, for a deadlock, of
	// which an application would be the victim.
	writers = "lock table tidemark.outbox in access exclusive mode; set local lock_timeout = '250ms'; " +
		"lock table tidemark.emit_key, tidemark.event_type, tidemark.inbound_route in access exclusive mode; " + haste
	// times is how often it tries that.
	times = 10
)

// ErrOlder and ErrNewer are what [Check] returns for a schema that this build cannot work with.
var (
	ErrOlder = errors.New("the schema is older than this build of tidemark")
	ErrNewer = errors.New("the schema is newer than this build of tidemark")
)

// A Report says what [Up] did.
type Report struct {
	// Roles holds the statements that made Tidemark's roles and their members. Empty: all was there.
	Roles []string
	// Applied holds the migrations that ran, as NNNN_name. Empty: all had run.
	Applied []string
	// Recreated counts the functions, triggers and views that were re-created: all of them or none.
	Recreated int
	// Warnings tell of a first installation what it lacks, and whose rights it shares.
	Warnings []string
}

// Up brings the schema up to date. It waits for another Up that is under way, at most a minute, and does nothing where
// nothing is left to do. On an error the database is as it was, but for the migration reported in Report: the first one,
// which makes the schema. A schema newer than this build is refused with ErrNewer.
//
// The role of conn needs SET on tidemark_owner and, the first time, CREATE on the database and CREATEROLE or roles that
// are there already. Where it lacks a right the error is a *RolesError, with the statements that somebody else has to
// run.
func Up(ctx context.Context, conn *pgx.Conn, opts ...Option) (Report, error) {
	var report Report
	o, err := collect(opts)
	if err != nil {
		return report, err
	}
	// It makes roles too, and installers in other databases of the cluster wait for these.
	if err := begin(ctx, conn, o, &report); err != nil {
		return report, waited(err)
	}
	return report, waited(upgrade(ctx, conn, o, &report))
}

// waited says of an error what it was that an installer waited for in vain.
func waited(err error) error {
	if timedOut(err) {
		return fmt.Errorf("another installer, or a session that has a table of Tidemark locked, did not end in time; run it again: %w", err)
	}
	return err
}

func timedOut(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03"
}

func (m migration) fileName() string { return fmt.Sprintf("%04d_%s", m.version, m.name) }

// begin makes the roles and runs the first migration, unless it has run.
func begin(ctx context.Context, conn *pgx.Conn, o options, report *Report) error {
	for tries := 1; ; tries++ {
		var done Report
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			done, err = beginIn(ctx, tx, o)
			return err
		})
		if tries < 3 && overtaken(err) {
			continue
		}
		if err == nil {
			*report = done
		}
		return err
	}
}

// overtaken: another installer made the schema between the look and create schema. It is there now, and the next look
// sees it.
func overtaken(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "23505" || pgErr.Code == "42P06")
}

func beginIn(ctx context.Context, tx pgx.Tx, o options) (Report, error) {
	in, err := enter(ctx, tx, o)
	if err != nil {
		return Report{}, err
	}
	if len(in.migrations) > len(embedded().migrations) {
		return Report{}, fmt.Errorf("%w: it has migration %d, this build knows %d", ErrNewer,
			len(in.migrations), len(embedded().migrations))
	}
	if len(in.migrations) > 0 {
		return Report{Roles: in.made}, nil
	}
	first := embedded().migrations[0]
	report := Report{Roles: in.made, Applied: []string{first.fileName()}, Warnings: in.warnings}
	if in.first {
		shared, err := sharedWith(ctx, tx, in.prefix)
		if err != nil {
			return Report{}, err
		}
		if len(shared) > 0 {
			report.Warnings = append(report.Warnings, sharing(in.prefix, shared))
		}
	}
	return report, first.run(ctx, tx, in.prefix)
}

// run runs a migration and records it.
func (m migration) run(ctx context.Context, tx pgx.Tx, prefix string) error {
	if err := run(ctx, tx, "migrations/"+m.fileName()+".sql", NameRoles(m.text, prefix)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, recordMigration, m.version, m.name, m.checksum, m.breaking)
	return err
}

// entered is what an installer finds, and what it did about its roles.
type entered struct {
	installed
	prefix   string
	first    bool // the schema is not there
	made     []string
	warnings []string
}

// enter makes the roles, waits for another installer that is under way and then looks, as the schema's owner, what is
// installed.
func enter(ctx context.Context, tx pgx.Tx, o options) (entered, error) {
	var in entered
	if _, err := tx.Exec(ctx, patience); err != nil {
		return in, err
	}
	owner, err := schemaOwner(ctx, tx)
	if err != nil {
		return in, err
	}
	if in.prefix, err = o.prefixFor(owner); err != nil {
		return in, err
	}
	in.first = owner == ""
	if in.made, in.warnings, err = makeRoles(ctx, tx, in.prefix, in.first); err != nil || in.first {
		return in, err
	}
	if _, err := tx.Exec(ctx, "set local role "+in.prefix+ownerRole); err != nil {
		return in, err
	}
	if _, err := tx.Exec(ctx, lock); err != nil {
		return in, err
	}
	in.installed, err = read(ctx, tx)
	return in, err
}

func sharing(prefix string, databases []string) string {
	const most = 5
	if more := len(databases) - most; more > 0 {
		databases = append(databases[:most:most], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("the roles %s… are those of Tidemark in %s too: a right here is one there; "+
		"--role-prefix gives a database roles of its own", prefix+"tidemark_", strings.Join(databases, ", "))
}

const recordMigration = `insert into tidemark.migration (version, name, checksum, breaking) values ($1, $2, $3, $4)`

// recordObject keeps, beside the file's checksum, what the catalog made of it: a definition that differs from
// that later was changed by hand.
const recordObject = `insert into tidemark.code (object, checksum, installed)
select $1, $2, (select md5(string_agg(d.definition, '' order by d.definition)) from (` + definitions + `) d where d.object = $1)
on conflict (object) do update
set checksum = excluded.checksum, installed = excluded.installed, applied_at = clock_timestamp()`

// definitions shows every function, trigger and view of the schema as the catalog has it. Triggers cloned to
// partitions are left out.
// What is made for a captured table is its inbound route's: tidemark.capture_refresh keeps that as it must be.
const definitions = `
select p.proname::text as object, pg_get_functiondef(p.oid) as definition
from pg_proc p where p.pronamespace = 'tidemark'::regnamespace
and not (p.proname ~ '^capture_[0-9]+$' and exists (select from pg_trigger t where t.tgfoid = p.oid))
union all
select t.tgname, pg_get_triggerdef(t.oid)
from pg_trigger t join pg_class c on c.oid = t.tgrelid
where c.relnamespace = 'tidemark'::regnamespace and not t.tgisinternal and t.tgparentid = 0
union all
select c.relname, pg_get_viewdef(c.oid)
from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'v'`

// upgrade runs the migrations that are left and re-creates code, in one transaction: a migration drops functions that
// emits call, and an emit between the two would fail, and with it the transaction of an application.
func upgrade(ctx context.Context, conn *pgx.Conn, o options, report *Report) error {
	var done Report
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
		done, err = upgradeIn(ctx, tx, o)
		return err
	})
	if err != nil {
		return err
	}
	report.Roles = append(report.Roles, done.Roles...)
	report.Applied = append(report.Applied, done.Applied...)
	report.Recreated = done.Recreated
	return nil
}

func upgradeIn(ctx context.Context, tx pgx.Tx, o options) (Report, error) {
	// Without the lock most of several installers at once fail with "tuple concurrently updated".
	in, err := enter(ctx, tx, o)
	if err != nil {
		return Report{}, err
	}
	report := Report{Roles: in.made}
	objects := embedded().objects
	left := embedded().migrations[min(len(in.migrations), len(embedded().migrations)):]
	if len(left) == 0 && in.current(objects) {
		return report, nil
	}
	if _, err := tx.Exec(ctx, haste); err != nil {
		return report, err
	}
	if len(left) > 0 && len(in.objects) > 0 {
		if err := stopWriters(ctx, tx); err != nil {
			return report, err
		}
	}
	for _, m := range left {
		if err := m.run(ctx, tx, in.prefix); err != nil {
			return report, err
		}
		report.Applied = append(report.Applied, m.fileName())
	}
	report.Recreated = len(objects)
	return report, recreate(ctx, tx, in.prefix)
}

func stopWriters(ctx context.Context, tx pgx.Tx) error {
	for tries := 1; ; tries++ {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint: what it has locked is let go
			_, err := tx.Exec(ctx, writers)
			return err
		})
		if tries == times || !timedOut(err) {
			return err
		}
	}
}

func recreate(ctx context.Context, tx pgx.Tx, prefix string) error {
	if _, err := tx.Exec(ctx, "set local check_function_bodies = off"); err != nil {
		return err
	}
	for _, c := range embedded().code {
		if err := run(ctx, tx, c.Path, NameRoles(c.Text, prefix)); err != nil {
			return err
		}
	}
	for _, o := range embedded().objects {
		if _, err := tx.Exec(ctx, recordObject, o.name, o.checksum); err != nil {
			return fmt.Errorf("recording %s: %w", o.name, err)
		}
	}
	// What was made of the old functions would call what there may be no more.
	if _, err := tx.Exec(ctx, "select tidemark.capture_refresh()"); err != nil {
		return fmt.Errorf("making the functions of captured tables anew: %w", err)
	}
	return nil
}

// run executes a file of ours. An error tells where in the file it happened.
func run(ctx context.Context, tx pgx.Tx, name, text string) error {
	_, err := tx.Conn().PgConn().Exec(ctx, text).ReadAll()
	if err == nil {
		return nil
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Position > 0 {
		line, column := position(text, int(pgErr.Position))
		return fmt.Errorf("%s:%d:%d: %w", name, line, column, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// position turns PostgreSQL's character offset, from 1, into line and column.
func position(text string, offset int) (line, column int) {
	runes := []rune(text)
	before := string(runes[:min(offset-1, len(runes))])
	return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
}
