// Package migrate installs Tidemark's schema and keeps it up to date. Migrations run once, in order; functions, triggers
// and views are re-created when one of them has changed. Both happen in one transaction, so that an application never
// calls functions of one build on tables of another. The first migration, which creates the schema, commits before.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Two installers in a database wait for each other with lock. At the first installation there is no table to lock: then
// the second installer waits at the unique indexes of the catalogs, where it creates the same role or schema. An advisory
// lock would not do, since any login could hold it. The lock does not stop readers of the table.
const (
	lock = "lock table tidemark.migration in exclusive mode"
	// settings limit the wait for another installer, and say how the files are read: a backslash in a plain literal is one.
	settings = "set local lock_timeout = '60s';\nset local standard_conforming_strings = on"
	// waitForTable limits the wait for a table that applications use: their next statements queue behind the installer.
	waitForTable = "set local lock_timeout = '3s'"
	// lockWritersTries is how often the installer tries lockWriters.
	lockWritersTries = 10
)

// altered finds the tables that a migration needs for itself alone, or an index of them.
var (
	altered = regexp.MustCompile(`(?:alter|drop) table (?:if exists )?tidemark\.(\w+)`)
	dropped = regexp.MustCompile(`drop index (?:if exists )?((?:tidemark\.\w+(?:, )?)+)`)
)

// lockWriters stops emits, captures and passes before the installer changes anything, so that one that waits holds no lock that
// the installer needs: it locks the log, the tables whose triggers are re-created, those that the migrations name, and the views.
// Sessions that read tables which no migration alters go on; those that read a view wait, since the installer makes all views anew.
// Sessions lock these in several orders, so a deadlock is possible once the first is locked.
// The further waits are less than a second in total: the installer gives up before PostgreSQL's deadlock check
// (deadlock_timeout, 1 s) could end a transaction of an application.
func lockWriters(left []migration) string {
	const (
		writers = "share row exclusive"
		all     = "access exclusive"
	)
	log, alone, names := writers, []string{}, []string{}
	if len(left) > 0 {
		// Emits and captures read these before they write to the log.
		log, alone = all, []string{"emit_key", "event_type", "inbound_route"}
	}
	for _, m := range left {
		for _, found := range altered.FindAllStringSubmatch(m.text, -1) {
			alone = append(alone, found[1])
		}
		for _, indexes := range dropped.FindAllStringSubmatch(m.text, -1) {
			for _, found := range named.FindAllStringSubmatch(indexes[1], -1) {
				alone = append(alone, found[1])
			}
		}
		for _, found := range named.FindAllStringSubmatch(m.text, -1) {
			names = append(names, found[1])
		}
	}
	list := func(of []string) string {
		slices.Sort(of)
		return "'{" + strings.Join(slices.Compact(of), ",") + "}'::text[]"
	}
	return fmt.Sprintf(`lock table tidemark.outbox in %s mode;
do $$
declare
    until constant timestamptz := clock_timestamp() + interval '800 milliseconds';
    t record;
begin
    for t in
        -- lock table would lock what a view reads as well; to own it already changes nothing.
        select format(case when c.relkind = 'v' then 'alter view tidemark.%%I owner to current_user'
                           when a.alone then 'lock table tidemark.%%I in %[3]s mode'
                           else 'lock table tidemark.%%I in %[4]s mode' end, c.relname) as statement
        from pg_class c
        cross join lateral (
            select c.relname = any (%[2]s) or exists (
                select from pg_index i join pg_class x on x.oid = i.indexrelid
                where i.indrelid = c.oid and x.relname = any (%[2]s)) as alone) a
        where c.relnamespace = 'tidemark'::regnamespace and c.relowner = current_user::regrole and not c.relispartition
          and (c.relkind = 'v'
               or c.relkind in ('r', 'p') and (a.alone or c.relname = any (%[5]s) or exists (
                   select from pg_trigger g where g.tgrelid = c.oid and not g.tgisinternal)))
        order by c.relkind = 'v'
    loop
        perform set_config('lock_timeout', greatest(1, 1000 * extract(epoch from until - clock_timestamp()))::integer::text, true);
        execute t.statement;
    end loop;
end
$$;
%[6]s`, log, list(alone), all, writers, list(names), waitForTable)
}

// A snapshot from before the wait for lock would not show what the other installer has done.
var committed = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// ErrOlder and ErrNewer are wrapped by the errors of [Check] for a schema that this build cannot work with.
var (
	ErrOlder = errors.New("the schema is older than this build of tidemark")
	ErrNewer = errors.New("the schema is newer than this build of tidemark")
)

// A Report says what [Up] did.
type Report struct {
	// Roles holds the statements that created Tidemark's roles and memberships. Empty: they existed already.
	Roles []string
	// Applied holds the migrations that ran, as NNNN_name. Empty: all had run before.
	Applied []string
	// Recreated counts the functions, triggers and views that were re-created: all of them or none.
	Recreated int
	// Warnings of a first installation: rights that it lacks, and databases that share its roles.
	Warnings []string
}

// Up brings the schema up to date. If the schema is current and as it was installed, Up does nothing. It waits up to a minute for another Up that
// is under way. On an error the database is as before, except for the first migration, which creates the schema and is
// then in the Report. Up refuses a schema newer than this build with ErrNewer.
//
// The role of conn needs SET on tidemark_owner. The first time it also needs CREATE on the database, and CREATEROLE
// unless the roles exist already. If it lacks a right, the error is a *RolesError with the statements that a superuser
// has to run.
func Up(ctx context.Context, conn *pgx.Conn, opts ...Option) (Report, error) {
	var report Report
	o, err := collect(opts)
	if err != nil {
		return report, err
	}
	// A transaction of its own: it creates roles, which installers in other databases of the cluster wait for.
	if err := begin(ctx, conn, o, &report); err != nil {
		return report, waited(err)
	}
	return report, waited(upgrade(ctx, conn, o, &report))
}

// waited explains a lock timeout: which sessions the installer waited for.
func waited(err error) error {
	if timedOut(err) {
		return fmt.Errorf("another installer, or a session with a lock on a table of Tidemark, did not end in time; run it again: %w", err)
	}
	return err
}

func timedOut(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03"
}

func (m migration) fileName() string { return fmt.Sprintf("%04d_%s", m.version, m.name) }

// begin creates the roles, and runs the first migration unless it has run.
func begin(ctx context.Context, conn *pgx.Conn, o options, report *Report) error {
	for tries := 1; ; tries++ {
		var done Report
		err := pgx.BeginTxFunc(ctx, conn, committed, func(tx pgx.Tx) (err error) {
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

// overtaken reports whether another installer created the schema after this one had found none. The next try sees it.
func overtaken(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "23505" || pgErr.Code == "42P06")
}

func beginIn(ctx context.Context, tx pgx.Tx, o options) (Report, error) {
	in, err := enter(ctx, tx, o)
	if err != nil {
		return Report{}, err
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

// entered is the state that an installer finds, and the role statements that it ran.
type entered struct {
	installed
	prefix   string
	first    bool // the schema does not exist yet
	made     []string
	warnings []string
}

// enter creates the roles, waits for another installer that is under way, and then reads, as the schema's owner, what is
// installed. It refuses a schema newer than this build.
func enter(ctx context.Context, tx pgx.Tx, o options) (entered, error) {
	var in entered
	if _, err := tx.Exec(ctx, settings); err != nil {
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
	if in.installed, err = read(ctx, tx); err != nil {
		return in, err
	}
	// Each transaction of Up asks: between the two an Up of a newer build may get the lock.
	if known := len(embedded().migrations); len(in.migrations) > known {
		return in, fmt.Errorf("%w: it has migration %d, this build knows %d", ErrNewer, len(in.migrations), known)
	}
	return in, nil
}

func sharing(prefix string, databases []string) string {
	const most = 5
	if more := len(databases) - most; more > 0 {
		databases = append(databases[:most:most], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("Tidemark uses the roles %s… in %s too: a right granted here is a right there; "+
		"--role-prefix gives a database roles of its own", prefix+"tidemark_", strings.Join(databases, ", "))
}

const recordMigration = `insert into tidemark.migration (version, name, checksum, breaking) values ($1, $2, $3, $4)`

// recordObjects records for each object the file's checksum and a checksum of the definition in the catalog. If the
// definition differs from it later, the object was changed by hand.
const recordObjects = `insert into tidemark.code (object, checksum, installed)
select o.name, o.checksum, d.now
from unnest($1::text[], $2::text[]) o (name, checksum)
left join (select d.object, md5(string_agg(d.definition, '' order by d.definition)) as now
           from (` + definitions + `) d group by d.object) d on d.object = o.name
on conflict (object) do update
set checksum = excluded.checksum, installed = excluded.installed, applied_at = clock_timestamp()`

// recorded are the names of the objects, and the checksums of their files.
func recorded() (names, checksums []string) {
	for _, o := range embedded().objects {
		names, checksums = append(names, o.name), append(checksums, o.checksum)
	}
	return names, checksums
}

// definitions selects every function, trigger and view of the schema as the catalog has it. It leaves out triggers that
// are cloned to partitions, and the functions of captured tables, which tidemark.capture_refresh maintains.
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

// upgrade runs the migrations that have not run and re-creates the code, in one transaction: a migration may drop a
// function that emit calls, and without the function an application's transaction would fail.
func upgrade(ctx context.Context, conn *pgx.Conn, o options, report *Report) error {
	var done Report
	err := pgx.BeginTxFunc(ctx, conn, committed, func(tx pgx.Tx) (err error) {
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
	// Without the lock, most of several concurrent installers fail with "tuple concurrently updated".
	in, err := enter(ctx, tx, o)
	if err != nil {
		return Report{}, err
	}
	report := Report{Roles: in.made}
	objects := embedded().objects
	left := embedded().migrations[len(in.migrations):]
	if len(left) == 0 && in.current(objects) {
		changed, err := changedObjects(ctx, tx)
		if err != nil || !slices.ContainsFunc(changed, func(o objectRow) bool { return o.Installed != nil }) {
			return report, err
		}
	}
	if _, err := tx.Exec(ctx, waitForTable); err != nil {
		return report, err
	}
	if len(in.objects) > 0 {
		if err := stopWriters(ctx, tx, lockWriters(left)); err != nil {
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

func stopWriters(ctx context.Context, tx pgx.Tx, lockWriters string) error {
	for tries := 1; ; tries++ {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint: on an error it releases its locks
			_, err := tx.Exec(ctx, lockWriters)
			return err
		})
		if tries == lockWritersTries || !timedOut(err) {
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
	names, checksums := recorded()
	if _, err := tx.Exec(ctx, recordObjects, names, checksums); err != nil {
		return fmt.Errorf("recording the code: %w", err)
	}
	// The functions of captured tables were made from the old code, and may call functions that no longer exist.
	if _, err := tx.Exec(ctx, "select tidemark.capture_refresh()"); err != nil {
		return fmt.Errorf("re-creating the functions of captured tables: %w", err)
	}
	return nil
}

// run executes an embedded file. Its error names the line and column of the mistake.
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

// position converts PostgreSQL's character offset, counted from 1, to a line and a column.
func position(text string, offset int) (line, column int) {
	runes := []rune(text)
	before := string(runes[:min(offset-1, len(runes))])
	return strings.Count(before, "\n") + 1, len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
}
