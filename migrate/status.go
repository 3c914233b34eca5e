package migrate

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/sql"
)

// A Status compares the schema in a database with the one in this build.
type Status struct {
	// Migrations holds every migration that the database or this build knows, in order.
	Migrations []MigrationStatus
	// CodeCurrent: functions, triggers and views are those of this build.
	CodeCurrent bool
}

// A MigrationStatus is the state of one migration.
type MigrationStatus struct {
	Version int
	Name    string
	// Applied: the migration has run in the database.
	Applied bool
	// Known: this build contains the migration. False: a newer build ran it.
	Known bool
}

// installed is the state that the database records.
type installed struct {
	migrations []migrationRow
	objects    map[string]objectRow
}

type migrationRow struct {
	Version  int
	Name     string
	Checksum string
	Breaking bool
}

type objectRow struct {
	Object    string
	Checksum  string
	Installed *string
	// Now is the checksum of the current definition in the catalog; nil: the object is gone.
	Now *string
}

// read returns what is installed. It works on a database without the schema too, where nothing is.
func read(ctx context.Context, db querier) (installed, error) {
	state := installed{objects: map[string]objectRow{}}
	var there bool
	if err := db.QueryRow(ctx, `select to_regclass('tidemark.migration') is not null`).Scan(&there); err != nil {
		return state, err
	}
	if !there {
		return state, nil
	}
	rows, err := db.Query(ctx, `select version, name, checksum, breaking from tidemark.migration order by version`)
	if err != nil {
		return state, err
	}
	if state.migrations, err = pgx.CollectRows(rows, pgx.RowToStructByPos[migrationRow]); err != nil {
		return state, err
	}
	rows, err = db.Query(ctx, `select object, checksum, installed, null::text from tidemark.code`)
	if err != nil {
		return state, err
	}
	objects, err := pgx.CollectRows(rows, pgx.RowToStructByPos[objectRow])
	for _, o := range objects {
		state.objects[o.Object] = o
	}
	return state, err
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// current reports whether the code in the database is that of the files, with no object more or less.
func (s installed) current(objects []object) bool {
	for _, o := range objects {
		if s.objects[o.name].Checksum != o.checksum {
			return false
		}
	}
	return len(s.objects) == len(objects)
}

// State compares the schema in the database with the one in this build.
func State(ctx context.Context, conn *pgx.Conn) (Status, error) {
	state, err := read(ctx, conn)
	if err != nil {
		return Status{}, err
	}
	known := embedded().migrations
	status := Status{CodeCurrent: state.current(embedded().objects)}
	for i := range max(len(known), len(state.migrations)) {
		m := MigrationStatus{Version: i + 1, Applied: i < len(state.migrations), Known: i < len(known)}
		if m.Known {
			m.Name = known[i].name
		} else {
			m.Name = state.migrations[i].Name
		}
		status.Migrations = append(status.Migrations, m)
	}
	return status, nil
}

// absentError is ErrOlder where no migration has run.
type absentError struct{}

func (absentError) Error() string {
	return "Tidemark is not installed in this database; run: tidemark migrate up"
}
func (absentError) Is(target error) bool { return target == ErrOlder }

// Check returns nil if this build can work with the schema. The error wraps ErrOlder if the schema lacks migrations or
// code of this build, and ErrNewer if a newer build ran a breaking migration. A newer schema without one is fine.
func Check(ctx context.Context, conn *pgx.Conn) error {
	state, err := read(ctx, conn)
	if err != nil {
		return err
	}
	known := embedded().migrations
	switch {
	case len(state.migrations) == 0:
		return absentError{}
	case len(state.migrations) < len(known):
		return fmt.Errorf("%w: %d of %d migrations have run; run: tidemark migrate up", ErrOlder,
			len(state.migrations), len(known))
	case len(state.migrations) == len(known) && !state.current(embedded().objects):
		return fmt.Errorf("%w: its functions come from another build; run: tidemark migrate up", ErrOlder)
	}
	for _, m := range state.migrations[len(known):] {
		if m.Breaking {
			return fmt.Errorf("%w: migration %04d_%s needs a newer tidemark", ErrNewer, m.Version, m.Name)
		}
	}
	return nil
}

// Verify looks for changes by hand: migrations that ran with another text, and objects that were altered, removed or added.
// It returns one line for each, and none if the schema is as installed.
func Verify(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	state, err := read(ctx, conn)
	if err != nil {
		return nil, err
	}
	if len(state.migrations) == 0 {
		return []string{absentError{}.Error()}, nil
	}
	var problems []string
	if _, err := InstalledPrefix(ctx, conn); err != nil {
		problems = append(problems, err.Error())
	}
	for i, m := range state.migrations {
		if i < len(embedded().migrations) && m.Checksum != embedded().migrations[i].checksum {
			problems = append(problems, fmt.Sprintf("migration %04d_%s: ran in this database with another text, such as that of a build before its release; "+
				"no command repeats it: compare the tables with those of a new installation", m.Version, m.Name))
		}
	}
	changed, err := changedObjects(ctx, conn)
	for _, o := range changed {
		switch {
		case o.Now == nil:
			problems = append(problems, o.Object+": gone since it was installed")
		case o.Installed == nil:
			problems = append(problems, o.Object+": not one of Tidemark's own objects, but in its schema")
		default:
			problems = append(problems, o.Object+": changed by hand since it was installed")
		}
	}
	return problems, err
}

// changedObjects are those whose definition is not the one that was installed.
func changedObjects(ctx context.Context, db querier) ([]objectRow, error) {
	rows, err := db.Query(ctx, `
select coalesce(c.object, d.object), coalesce(c.checksum, ''), c.installed, d.now
from tidemark.code c
full join (select d.object, md5(string_agg(d.definition, '' order by d.definition)) as now
           from (`+definitions+`) d group by d.object) d on d.object = c.object
where c.installed is distinct from d.now
order by 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[objectRow])
}

// Print writes all SQL that Up would run on an empty database, with the records that it makes, as one script for psql.
func Print(w io.Writer, opts ...Option) error {
	o, err := collect(opts)
	if err != nil {
		return err
	}
	prefix, err := o.prefixFor("")
	if err != nil {
		return err
	}
	var out strings.Builder
	out.WriteString("\\set ON_ERROR_STOP on\n")
	fmt.Fprintf(&out, "\n-- roles.sql\nselect statement from (\n%s) s where not done and needed <> 'advice'\n\\gexec\n",
		strings.ReplaceAll(sql.Roles, "$1", "current_user"))
	for _, m := range embedded().migrations {
		fmt.Fprintf(&out, "\n-- migrations/%s.sql\nbegin;\n%s;\n", m.fileName(), settings)
		if m.version > 1 {
			fmt.Fprintf(&out, "set local role %s;\n%s;\n%s;\n", ownerRole, lock, waitForTable)
		}
		out.WriteString(m.text + m.record() + "commit;\n")
	}
	fmt.Fprintf(&out, "\nbegin;\n%s;\nset local role %s;\n%s;\n%s;\n", settings, ownerRole, lock, waitForTable)
	printCode(&out)
	out.WriteString("commit;\n")
	_, err = io.WriteString(w, NameRoles(out.String(), prefix))
	return err
}

// record is the statement that records a migration.
func (m migration) record() string {
	return fmt.Sprintf("insert into tidemark.migration (version, name, checksum, breaking) values (%d, '%s', '%s', %t);\n", m.version, m.name, m.checksum, m.breaking)
}

// printCode writes what recreate runs.
func printCode(out *strings.Builder) {
	out.WriteString("set local check_function_bodies = off;\n")
	for _, c := range embedded().code {
		fmt.Fprintf(out, "\n-- %s\n%s", c.Path, c.Text)
	}
	names, checksums := recorded()
	out.WriteString(strings.NewReplacer("$1", "'{"+strings.Join(names, ",")+"}'", "$2", "'{"+strings.Join(checksums, ",")+"}'").Replace(recordObjects))
	out.WriteString(";\n")
}

// PrintUpgrade writes what Up would run on a database whose last migration is from (0: on an empty one whose roles exist), for
// other tools: statements alone, which run in one transaction that the tool begins and commits. They fail on a database with
// another last migration.
func PrintUpgrade(w io.Writer, from int, opts ...Option) error {
	o, err := collect(opts)
	if err != nil {
		return err
	}
	prefix, err := o.prefixFor("")
	if err != nil {
		return err
	}
	all := embedded().migrations
	if from < 0 || from > len(all) {
		return fmt.Errorf("there is no migration %d: this build has 1 to %d", from, len(all))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "-- Tidemark: from migration %d to %d, with the functions of this release. Run it in one transaction.\n", from, len(all))
	fmt.Fprintf(&out, `do $$
declare
    last integer := 0;
begin
    if to_regclass('tidemark.migration') is not null then
        last := (select coalesce(max(m.version), 0) from tidemark.migration m);
    end if;
    if last <> %[1]d then
        raise exception 'the last migration of this database is %%, and this script is for %[1]d', last;
    end if;
end
$$;
%[2]s;
`, from, settings)
	if from > 0 {
		fmt.Fprintf(&out, "set local role %s;\n%s;\n%s;\n%s;\n", ownerRole, lock, waitForTable, lockWriters(all[from:]))
	}
	for _, m := range all[from:] {
		fmt.Fprintf(&out, "\n-- migrations/%s.sql\n%s%s", m.fileName(), m.text, m.record())
	}
	fmt.Fprintf(&out, "\nset local role %s;\n", ownerRole)
	printCode(&out)
	out.WriteString("select tidemark.capture_refresh();\n\nreset role;\nset local lock_timeout to default;\nset local check_function_bodies = on;\n" +
		"set local standard_conforming_strings to default;\n")
	_, err = io.WriteString(w, NameRoles(out.String(), prefix))
	return err
}
