// Package migrate installs Tidemark's schema and keeps it up to date: migrations run once, in order, one
// transaction each; functions, triggers and views are re-created, all in one transaction, when they changed.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lock serializes installers, whatever database of the cluster they work on: roles belong to the cluster.
// A lock of the transaction and not of the session, so that it holds through PgBouncer too.
const lock = "select pg_catalog.pg_advisory_xact_lock(7233185930371)"

// ErrOlder and ErrNewer are what [Check] returns for a schema that this build cannot work with.
var (
	ErrOlder = errors.New("the schema is older than this build of tidemark")
	ErrNewer = errors.New("the schema is newer than this build of tidemark")
)

// A Report says what [Up] did.
type Report struct {
	// Applied holds the migrations that ran, as NNNN_name. Empty: all had run.
	Applied []string
	// Recreated counts the functions, triggers and views that were re-created: all of them or none.
	Recreated int
}

// Up brings the schema up to date. It waits for another Up that is under way, and does nothing where
// nothing is left to do. On an error the migrations reported in Report stay applied, and the rest of the
// database is as it was. A schema newer than this build is refused with ErrNewer.
//
// conn's role needs CREATE on the database and, the first time in a cluster, CREATEROLE or superuser.
func Up(ctx context.Context, conn *pgx.Conn) (Report, error) {
	var report Report
	for _, m := range embedded().migrations {
		ran, err := apply(ctx, conn, m)
		if err != nil {
			return report, err
		}
		if ran {
			report.Applied = append(report.Applied, m.fileName())
		}
	}
	n, err := recreate(ctx, conn, embedded().objects)
	report.Recreated = n
	return report, err
}

func (m migration) fileName() string { return fmt.Sprintf("%04d_%s", m.version, m.name) }

func apply(ctx context.Context, conn *pgx.Conn, m migration) (ran bool, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lock); err != nil {
			return err
		}
		state, err := read(ctx, tx)
		if err != nil {
			return err
		}
		if len(state.migrations) > len(embedded().migrations) {
			return fmt.Errorf("%w: it has migration %d, this build knows %d", ErrNewer,
				len(state.migrations), len(embedded().migrations))
		}
		if m.version <= len(state.migrations) {
			return nil
		}
		ran = true
		if err := run(ctx, tx, "migrations/"+m.fileName()+".sql", m.text); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, recordMigration, m.version, m.name, m.checksum, m.breaking)
		return err
	})
	return ran && err == nil, err
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
const definitions = `
select p.proname::text as object, pg_get_functiondef(p.oid) as definition
from pg_proc p where p.pronamespace = 'tidemark'::regnamespace
union all
select t.tgname, pg_get_triggerdef(t.oid)
from pg_trigger t join pg_class c on c.oid = t.tgrelid
where c.relnamespace = 'tidemark'::regnamespace and not t.tgisinternal and t.tgparentid = 0
union all
select c.relname, pg_get_viewdef(c.oid)
from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'v'`

func recreate(ctx context.Context, conn *pgx.Conn, objects []object) (n int, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Without the lock most of several installers at once fail with "tuple concurrently updated".
		if _, err := tx.Exec(ctx, lock); err != nil {
			return err
		}
		state, err := read(ctx, tx)
		if err != nil || state.current(objects) {
			return err
		}
		if _, err := tx.Exec(ctx, "set local role tidemark_owner; set local check_function_bodies = off"); err != nil {
			return err
		}
		for _, o := range objects {
			if err := run(ctx, tx, "code/"+o.name+".sql", o.text); err != nil {
				return err
			}
		}
		for _, o := range objects {
			if _, err := tx.Exec(ctx, recordObject, o.name, o.checksum); err != nil {
				return fmt.Errorf("recording %s: %w", o.name, err)
			}
		}
		// What was made of the old functions would call what there may be no more.
		if _, err := tx.Exec(ctx, "select tidemark.capture_refresh()"); err != nil {
			return fmt.Errorf("making the functions of captured tables anew: %w", err)
		}
		n = len(objects)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
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
