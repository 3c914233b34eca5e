package test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CU2: applications write while an installation is upgraded. An upgrade that fails, here behind an operator's transaction
// that holds a table of which only code is re-created, leaves all as it was; one that succeeds is never met half way.
func TestUpgradeUnderWriters(t *testing.T) {
	t.Parallel()
	u := beforeUpgrade(t)
	u.load("testdata/upgrade/0021.sql")
	connect := func() session {
		conn, err := pgx.Connect(t.Context(), u.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return session{t, "", conn}
	}
	sleeper, operator, writer := connect(), connect(), connect()
	sleeper.exec(`select pg_advisory_lock_shared(1953064301, 1)`) // as a worker that sleeps
	writes := []string{
		`select tidemark.emit_strict('test', 'tick', '{"n": 1}')`,
		`select tidemark.emit_strict('test', 'tick', '{"n": 1}', idempotency_key => gen_random_uuid()::text)`,
		`select tidemark.emit_many_strict('[{"domain": "test", "type": "tick"}]')`,
		`insert into orders values ((select max(id) + 1 from orders), 4)`,
		`select tidemark.heartbeat_write('backup')`,
	}
	for _, write := range writes {
		writer.exec(write)
	}
	before := schema(u.session)

	operator.begin()
	operator.exec(`lock table tidemark.setting in row exclusive mode`)
	report, err := migrate.Up(t.Context(), u.conn)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "55P03" || len(report.Applied) > 0 || report.Recreated > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	for _, write := range writes {
		if _, err := writer.conn.Exec(t.Context(), write); err != nil {
			t.Errorf("%s: %v", write, err)
		}
	}
	if after := schema(u.session); len(after) != len(before) {
		t.Errorf("the schema had %d lines and has %d", len(before), len(after))
	}
	operator.rollback()

	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for n := 0; ; n++ {
			if _, err := writer.conn.Exec(t.Context(), writes[n%len(writes)]); err != nil {
				failed <- fmt.Errorf("%s: %w", writes[n%len(writes)], err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	report, err = migrate.Up(t.Context(), u.conn)
	close(done)
	if err != nil || len(report.Applied) == 0 || report.Recreated == 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if err := <-failed; err != nil {
		t.Errorf("a writer while it is upgraded: %v", err)
	}
}

// An upgrade of functions alone makes their triggers and the views anew too. A writer that has locked the log, or what a pass writes
// before it, or has read a view, and goes on to the other while the installer waits, is not failed by it.
func TestUpOfCodeBesideWriters(t *testing.T) {
	t.Parallel()
	const (
		emits = `select tidemark.emit('test', 'tick', '{"n": 1}')`
		beats = `update tidemark.heartbeat set last_status = last_status`
		sets  = `update tidemark.setting set value = value`
		looks = `select count(*) from tidemark.heartbeat_health`
	)
	for name, writes := range map[string][2]string{
		"beat after emit": {emits, beats}, "emit after beat": {beats, emits},
		"setting after emit": {emits, sets}, "emit after setting": {sets, emits},
		"emit after a look": {looks, emits}, "look after emit": {emits, looks},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, app, installer := live(t, db), open(t, db, "app"), open(t, db, "installer")
			w.exec(`update tidemark.code set checksum = 'of another build' where object = 'emit'`)
			app.begin()
			app.exec(writes[0])
			var report migrate.Report
			done := make(chan error, 1)
			go func() {
				var err error
				report, err = migrate.Up(context.Background(), installer.conn)
				done <- err
			}()
			w.waitsFor(installer)
			if err := app.try(writes[1]); err != nil {
				t.Errorf("the writer: %v", err)
			}
			app.exec(`commit`)
			if err := <-done; err != nil || report.Recreated == 0 {
				t.Errorf("%+v, %v", report, err)
			}
			w.wantRows(`select count(*)::text from tidemark.outbox`, "1")
		})
	}
}
