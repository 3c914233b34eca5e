package test

// What gives a row an earlier time than the server shows for the transaction that writes it, each tried: the horizon
// of a clock source stays behind it, and goes forward where nothing of the kind is under way. The list is in
// docs/sources.md.

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const bornNow = `alter table births alter born_at set default now()`

// overSocket is a session over the server's socket, whose buffers are small and do not grow.
func overSocket(t *testing.T, s session, parameters map[string]string) session {
	t.Helper()
	config := s.conn.Config().Copy()
	config.Host = strings.Split(one[string](s, `show unix_socket_directories`), ",")[0]
	config.Fallbacks = nil
	maps.Copy(config.RuntimeParams, parameters)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return session{t, "socket", conn}
}

// stopBetween sends statements as one message and returns when the server has stopped before them, between two
// transactions of the message: it has nowhere to put its answers. Read the answer, and it goes on.
func (s session) stopBetween(watch session, statements string) *pgconn.MultiResultReader {
	s.t.Helper()
	s.exec("set client_min_messages = error") // what is said within a transaction would stop it there
	answer := s.conn.PgConn().Exec(context.Background(), strings.Repeat("commit;", 60000)+statements)
	s.becomes(watch, `state = 'active' and wait_event = 'ClientWrite' and xact_start is null`)
	return answer
}

// becomes returns when what watch sees of the session is so.
func (s session) becomes(watch session, so string) {
	s.t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(3 * time.Minute); ; <-poll.C {
		if one[bool](watch, `select coalesce(`+so+`, false) from pg_stat_activity where pid = $1`, s.conn.PgConn().PID()) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: never %s", s.name, so)
		}
	}
}

// Each case leaves a session where its next transaction will have a time of the past, and ends it.
func TestSourceHorizonStaysBehind(t *testing.T) {
	t.Parallel()
	const insert = `begin; insert into births default values; commit`
	inMessage := func(statements string) func(t *testing.T, watch, a session) (release func()) {
		return func(t *testing.T, watch, a session) func() {
			answer := a.stopBetween(watch, statements)
			return func() {
				if err := answer.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for name, c := range map[string]func(t *testing.T, watch, a session) (release func()){
		"several transactions in a message": inMessage(insert + ";" + insert),
		"a chain":                           inMessage(`begin; insert into births default values; commit and chain; insert into births default values; commit`),
		"the last one is prepared": func(t *testing.T, watch, a session) func() {
			end := inMessage(`begin; insert into births default values; prepare transaction '`+pid(a)+`'`)(t, watch, a)
			return func() { end(); a.exec(`commit prepared '` + pid(a) + `'`) }
		},
		"a transaction that rolled back to a savepoint": func(t *testing.T, watch, a session) func() {
			a.exec(`begin; savepoint s; insert into births default values; rollback to s`)
			return func() { a.exec(`insert into births default values; commit`) }
		},
		"an error in it": func(t *testing.T, watch, a session) func() {
			a.exec(`begin; savepoint s`)
			if err := a.try(`select 1 / 0`); err == nil {
				t.Error("no error")
			}
			return func() { a.exec(`rollback to s; insert into births default values; commit`) }
		},
		"a pipeline": func(t *testing.T, watch, a session) func() {
			p := a.conn.PgConn().StartPipeline(context.Background())
			for _, sql := range []string{"begin", "commit"} {
				p.SendQueryParams(sql, nil, nil, nil, nil)
			}
			p.SendFlushRequest()
			if err := p.Flush(); err != nil {
				t.Fatal(err)
			}
			a.becomes(watch, `state = 'active' and wait_event = 'ClientRead' and xact_start is null and query = 'commit'`)
			return func() {
				for _, sql := range strings.Split(insert, ";") {
					p.SendQueryParams(sql, nil, nil, nil, nil)
				}
				if err := p.Sync(); err != nil {
					t.Error(err)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s, b := tail(t, db, "clock", ""), open(t, db, "b")
			s.exec(bornNow)
			s.exec(insertBirths)
			s.drain()
			a := overSocket(t, b, nil)
			release := c(t, b, a)
			b.exec(insertBirths)
			s.rewrite("oldest_transaction", "interval '10 seconds'", "interval '0'")
			s.drain()
			s.sweep()
			s.want(`select count(*) from taken`, "5")
			began := `(select least(xact_start, query_start) from pg_stat_activity where pid = ` + pid(a) + `)`
			s.want(`select horizon <= `+began+`, last_run_summary ->> 'held_back_by' like 'pid `+pid(a)+`,%' from tidemark.worker_cursor where worker = 'w'`, "true true")
			s.want(`select (n.plan).horizon <= `+began+` from tidemark.source_next('w', 'births', 0) n`, "true")
			release()
			s.wantWell()
			s.want(`select count(*) > 10 from taken`, "true")
		})
	}
}

func pid(s session) string { return strconv.Itoa(int(s.conn.PgConn().PID())) }

// In a procedure that commits each transaction has its own time, and holds nothing back that is older.
func TestSourceHorizonFollowsProcedures(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a, b := tail(t, db, "clock", ""), open(t, db, "a"), open(t, db, "b")
	s.exec(bornNow)
	b.exec(`select pg_advisory_lock(1), pg_advisory_lock(2)`)
	done := make(chan error, 1)
	go func() {
		_, err := a.conn.Exec(context.Background(), `do $$ begin
			insert into births default values; perform pg_advisory_xact_lock(1); commit;
			perform pg_advisory_xact_lock(2); insert into births default values; end $$`)
		done <- err
	}()
	b.waitsFor(a)
	b.exec(insertBirths)
	b.exec(`select pg_advisory_unlock(1)`)
	a.becomes(b, `wait_event = 'advisory' and xact_start > query_start`)
	s.drain()
	s.want(`select count(*) from taken`, "6")
	b.exec(insertBirths)
	s.drain()
	s.want(`select count(*) from taken`, "6")
	b.exec(`select pg_advisory_unlock(2)`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.wantWell()
	s.want(`select count(*) from taken`, "12")
}

// A pass in a longer transaction of its caller: what that writes afterwards has the time of its beginning.
func TestSourceHorizonOfItsOwnTransaction(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, b := tail(t, db, "clock", ""), open(t, db, "b")
	s.exec(bornNow)
	s.begin()
	s.want(`select now() < clock_timestamp()`, "true")
	b.exec(insertBirths)
	s.drain()
	s.exec(insertBirths)
	s.commit()
	s.wantWell()
	s.want(`select count(*) from taken`, "10")
}

// A session that began to show what it does in the middle of a transaction shows no start of it.
func TestSourceHorizonStartIsNotShown(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a, b := tail(t, db, "clock", ""), open(t, db, "a"), open(t, db, "b")
	s.exec(bornNow)
	a.exec(`set track_activities = off`)
	a.begin()
	a.exec(insertBirths)
	b.exec(insertBirths)
	a.exec(`set track_activities = on`)
	s.wantHeld("source_unreadable", "pg_read_all_stats")
	b.exec(`select pg_advisory_lock(1)`)
	done := make(chan error, 1)
	go func() {
		_, err := a.conn.Exec(context.Background(), `select pg_advisory_xact_lock(1)`)
		done <- err
	}()
	b.waitsFor(a)
	s.drain()
	s.want(`select (select count(*) from taken), horizon, last_run_summary ->> 'held_back_by' like 'pid `+pid(a)+`,%in its message for a time that is not shown'
		from tidemark.worker_cursor where worker = 'w'`, "0 - true")
	b.exec(`select pg_advisory_unlock(1)`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	a.commit()
	s.wantWell()
	s.want(`select count(*) from taken`, "10")
}

// What failed writes nothing more, though its session waits for the rollback for hours. From a savepoint it can go on.
func TestSourceHorizonAfterAnError(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, a, b := tail(t, db, "clock", ""), open(t, db, "a"), open(t, db, "b")
	for _, began := range []string{`select txid_current()`, insertBirths, `savepoint one; ` + insertBirths} {
		a.begin()
		a.exec(began)
		if _, err := a.conn.Exec(t.Context(), `select 1 / 0`); err == nil {
			t.Fatal("divided by zero")
		}
		a.becomes(b, `state = 'idle in transaction (aborted)'`)
		if strings.HasPrefix(began, "savepoint") {
			if got := s.once(); got.Status == "held" {
				t.Errorf("%+v", got)
			}
			a.exec(`rollback to one; ` + insertBirths)
			s.exec(insertBirths)
			s.drain()
			a.commit()
		} else {
			s.exec(insertBirths)
			s.drain()
			s.want(`select count(*) - (select count(*) from taken) from births`, "0")
			a.rollback()
		}
		s.wantWell()
	}
	s.want(`select count(*) - (select count(*) from taken) from births`, "0")
}

// A session that ends in the middle of a transaction shows none for a moment, which is long where it has much to release.
func TestSourceHorizonOfSessionsThatEnd(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tail(t, db, "clock", "")
	s.exec(bornNow)
	for range 20 {
		a := open(t, db, "a")
		a.exec(`select count(pg_advisory_lock(n)) from generate_series(1, 2000) n`)
		a.begin()
		a.exec(insertBirths)
		done := make(chan error, 1)
		go func() {
			_, err := s.conn.Exec(context.Background(), `do $$ begin
				while exists (select from pg_stat_get_activity(`+pid(a)+`)) loop
					if (tidemark.oldest_transaction()).hidden then raise 'hidden'; end if;
				end loop; end $$`)
			done <- err
		}()
		if err := a.conn.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	s.wantWell()
}

// A sender of changes to a standby or a subscriber is active for days, and writes nothing. The same kind of session
// may send SQL, though.
func TestSourceHorizonOfWalSenders(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDBAt(t, testserver.New(t, devpg.Options{Settings: map[string]string{"wal_level": "logical"}}).URL("postgres"))
	s, b := tail(t, db, "clock", ""), open(t, db, "b")
	s.exec(bornNow)
	s.exec(`select pg_create_logical_replication_slot('s', 'test_decoding')`)
	replicating := map[string]string{"replication": "database"}
	sender := overSocket(t, b, replicating)
	sender.conn.PgConn().Frontend().SendQuery(&pgproto3.Query{String: `  START_REPLICATION SLOT s LOGICAL 0/0`})
	if err := sender.conn.PgConn().Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	sender.becomes(b, `backend_type = 'walsender' and query like '%START_REPLICATION%' and wait_event like 'WalSender%'`)
	b.exec(insertBirths)
	s.drain()
	s.want(`select count(*) from taken`, "5")

	writer := overSocket(t, b, replicating)
	answer := writer.stopBetween(b, `begin; insert into births default values; commit`)
	b.exec(insertBirths)
	s.drain()
	s.want(`select count(*) from taken`, "5")
	if err := answer.Close(); err != nil {
		t.Error(err)
	}
	s.wantWell()
	s.want(`select count(*) from taken`, "11")
}

// What a session sends as its query says nothing about what can be seen of it.
func TestQueryThatLooksHidden(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	stranger, s := open(t, db, "stranger"), open(t, db, "reader")
	if _, err := stranger.conn.PgConn().Exec(t.Context(), `<insufficient privilege>`).ReadAll(); err == nil {
		t.Fatal("that is no statement")
	}
	s.wantRows(`select concat_ws(' ', a.query, o.hidden) from pg_stat_activity a, tidemark.oldest_transaction() o where a.pid = `+strconv.Itoa(int(stranger.conn.PgConn().PID())),
		"<insufficient privilege> f")
}
