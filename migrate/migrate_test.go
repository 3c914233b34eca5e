package migrate_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m) }

func TestUpTwice(t *testing.T) {
	t.Parallel()
	conn := tidemarktest.NewEmptyDB(t).Connect(t)

	first, err := migrate.Up(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Applied) == 0 || first.Recreated == 0 {
		t.Errorf("first Up did nothing: %+v", first)
	}
	second, err := migrate.Up(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Applied) != 0 || second.Recreated != 0 {
		t.Errorf("second Up was not a no-op: %+v", second)
	}
	if err := migrate.Check(t.Context(), conn); err != nil {
		t.Error(err)
	}
	problems, err := migrate.Verify(t.Context(), conn)
	if err != nil || len(problems) != 0 {
		t.Errorf("Verify after Up: %v %v", problems, err)
	}
}

// Without the lock on tidemark.migration, most of several concurrent installers fail.
func TestUpAtOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewEmptyDB(t)
	var wait sync.WaitGroup
	var applied, recreated int
	var count sync.Mutex
	for range 6 {
		conn := db.Connect(t)
		wait.Go(func() {
			report, err := migrate.Up(t.Context(), conn)
			if err != nil {
				t.Error(err)
			}
			count.Lock()
			defer count.Unlock()
			applied += len(report.Applied)
			if report.Recreated > 0 {
				recreated++
			}
		})
	}
	wait.Wait()
	state, err := migrate.State(t.Context(), db.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	if applied != len(state.Migrations) || recreated != 1 {
		t.Errorf("migrations applied %d times, code %d times; want %d and 1", applied, recreated, len(state.Migrations))
	}
}

func TestCheckEmptyOlderNewer(t *testing.T) {
	t.Parallel()
	empty := tidemarktest.NewEmptyDB(t).Connect(t)
	wantCheck(t, empty, migrate.ErrOlder, "Tidemark is not installed in this database; run: tidemark migrate up")

	conn := tidemarktest.NewDB(t).Connect(t)
	exec1(t, conn, `update tidemark.code set checksum = 'another' where object = 'emit'`)
	wantCheck(t, conn, migrate.ErrOlder, "tidemark migrate up")

	if _, err := migrate.Up(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	exec1(t, conn, `insert into tidemark.migration (version, name, checksum)
		select max(version) + 1, 'of_the_future', 'x' from tidemark.migration`)
	if err := migrate.Check(t.Context(), conn); err != nil {
		t.Errorf("Check refuses a newer schema without a breaking migration: %v", err)
	}
	if _, err := migrate.Up(t.Context(), conn); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("Up on a newer schema: %v", err)
	}
	exec1(t, conn, `update tidemark.migration set breaking = true where name = 'of_the_future'`)
	wantCheck(t, conn, migrate.ErrNewer, "of_the_future")
}

// Up waits twice for the lock. If a newer build's Up gets it in between, Up must not put its older code over the newer tables.
func TestUpBehindANewerOne(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"read committed", "repeatable read"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			upBehindANewerOne(t, isolation)
		})
	}
}

func upBehindANewerOne(t *testing.T, isolation string) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	first, older, newer, eye := db.Connect(t), db.Connect(t), db.Connect(t), db.Connect(t)
	exec1(t, older, `set default_transaction_isolation = '`+isolation+`'`)
	beside := func(run func() error) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- run() }()
		return ended
	}
	waits := func(conn *pgx.Conn) {
		t.Helper()
		exec1(t, eye, `do $$ begin
			for i in 1 .. 5000 loop
				if exists (select from pg_locks l where l.pid = `+strconv.Itoa(int(conn.PgConn().PID()))+` and not l.granted) then return; end if;
				perform pg_sleep(0.002);
			end loop;
			raise 'it does not wait'; end $$`)
	}

	exec1(t, first, `begin; lock table tidemark.migration in exclusive mode`)
	upgraded := beside(func() error {
		_, err := migrate.Up(context.Background(), older)
		return err
	})
	waits(older)
	locked := beside(func() error {
		_, err := newer.Exec(context.Background(), `begin; lock table tidemark.migration in exclusive mode`)
		return err
	})
	waits(newer)
	exec1(t, first, `commit`) // older has looked, and queues again
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	waits(older)
	exec1(t, newer, `insert into tidemark.migration (version, name, checksum)
			select max(version) + 1, 'of_the_future', 'x' from tidemark.migration;
		update tidemark.code set checksum = 'newer' where object = 'emit';
		commit`)
	if err := <-upgraded; !errors.Is(err, migrate.ErrNewer) {
		t.Errorf("Up: %v; want ErrNewer", err)
	}
	var checksum string
	if err := eye.QueryRow(t.Context(), `select checksum from tidemark.code where object = 'emit'`).Scan(&checksum); err != nil || checksum != "newer" {
		t.Errorf("emit is of %q: the older build re-created it (%v)", checksum, err)
	}
}

// A first line "-- breaking", with what breaks or without, is on record, and keeps older programs out.
func TestBreakingMigrations(t *testing.T) {
	t.Parallel()
	conn := tidemarktest.NewDB(t).Connect(t)
	var got string
	if err := conn.QueryRow(t.Context(), `select string_agg(name, ' ' order by version) from tidemark.migration where breaking`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != "domain_gates route_pause" {
		t.Errorf("breaking: %s", got)
	}
}

func wantCheck(t *testing.T, conn *pgx.Conn, want error, text string) {
	t.Helper()
	err := migrate.Check(t.Context(), conn)
	if err == nil || !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("Check: %v; want %q with %q", err, want, text)
	}
}

func TestVerifyFindsWhatWasChangedByHand(t *testing.T) {
	t.Parallel()
	conn := tidemarktest.NewDB(t).Connect(t)
	exec1(t, conn, `create or replace function tidemark.gate_open(gate text) returns boolean language sql as 'select true'`)
	exec1(t, conn, `drop trigger outbox_no_truncate on tidemark.outbox`)
	exec1(t, conn, `create function tidemark.mine() returns int language sql as 'select 1'`)
	exec1(t, conn, `update tidemark.migration set checksum = 'another' where version = 1`)

	got, err := migrate.Verify(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"migration 0001_schema: ran in this database with another text, such as that of a build before its release; no command repeats it: " +
			"compare the tables with those of a new installation",
		"gate_open: changed by hand since it was installed",
		"mine: not one of Tidemark's own objects, but in its schema",
		"outbox_no_truncate: gone since it was installed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	// Up mends what it has installed.
	report, err := migrate.Up(t.Context(), conn)
	if err != nil || report.Recreated == 0 {
		t.Errorf("%+v %v", report, err)
	}
	if got, err = migrate.Verify(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{want[0], want[2]}, got); diff != "" {
		t.Error(diff)
	}
	if report, err = migrate.Up(t.Context(), conn); err != nil || report.Recreated != 0 {
		t.Errorf("%+v %v", report, err)
	}
}

// The script of `migrate print` installs the same schema as Up.
func TestPrintInstalls(t *testing.T) {
	t.Parallel()
	// A server of its own: the script creates the roles of the cluster, as other tests may do at the same time.
	server := testserver.New(t, devpg.Options{})
	psql, err := exec.LookPath("psql")
	if err != nil {
		psql = server.BinDir() + "/psql"
	}
	var script bytes.Buffer
	if err := migrate.Print(&script); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), psql, "-X", "-q", "-d", server.URL("postgres"))
	cmd.Stdin = &script
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if err := migrate.Check(t.Context(), conn); err != nil {
		t.Error(err)
	}
	if problems, err := migrate.Verify(t.Context(), conn); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// A migration that drops an index needs its table for itself: the installer locks it so from the beginning, since to raise a lock can
// end in a deadlock.
func TestTablesOfDroppedIndexesAreLocked(t *testing.T) {
	t.Parallel()
	const dropped = 97 // drops tidemark.command_parked_due, and does not alter its table
	conn := tidemarktest.NewDB(t).Connect(t)
	var script bytes.Buffer
	if err := migrate.PrintUpgrade(&script, dropped-1); err != nil {
		t.Fatal(err)
	}
	_, locks, _ := strings.Cut(script.String(), "set local lock_timeout = '3s';\n")
	locks, _, _ = strings.Cut(locks, "-- migrations/")
	exec1(t, conn, `set role tidemark_owner; begin;`+locks)
	var modes string
	if err := conn.QueryRow(t.Context(), `select string_agg(distinct l.mode, ' ') from pg_locks l
		where l.pid = pg_backend_pid() and l.relation = 'tidemark.command_parked'::regclass and l.mode like '%Exclusive%'`).Scan(&modes); err != nil || modes != "AccessExclusiveLock" {
		t.Errorf("%q, %v", modes, err)
	}
}

func exec1(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
