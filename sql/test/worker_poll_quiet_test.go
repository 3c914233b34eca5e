package test

import (
	"context"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// look polls for a sleeper as a Poller does that knows what was counted at the last look: why it has work, and what is counted now.
func (d *sleeper) look(known *int64) (why string, counted *int64) {
	d.t.Helper()
	rows, err := d.conn.Query(context.Background(),
		`select coalesce(why, ''), counted from tidemark.poll('me', '30 seconds', '{w}', '{births}', '{0}', array[$1::bigint], array[$2::bigint])`, d.epoch, known)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&why, &counted); err != nil {
			d.t.Fatal(err)
		}
	}
	if rows.Err() != nil {
		d.t.Fatal(rows.Err())
	}
	return why, counted
}

// A poll that knows what the server had counted of a table reads it once the server counts more, and whatever it counts where the
// caller knows nothing, where a sweep is due, or where the server cannot tell.
func TestPollOfAQuietTable(t *testing.T) {
	t.Parallel()
	const counts, not = `set track_counts = on`, `set track_counts = off`
	for name, c := range map[string]struct {
		safety, counts, change string
		known                  string // with what was counted
		unknown                string // with nothing
	}{
		"nothing":            {"sequence", counts, `select`, "", ""},
		"a row":              {"sequence", counts, `insert into births default values`, "rows", "rows"},
		"at a clock":         {"clock", counts, `insert into births default values`, "rows", "rows"},
		"a row put forward":  {"declared", counts, `update births set born_at = now()`, "rows", "rows"},
		"into a child":       {"sequence", counts, `create table twins () inherits (births); insert into twins (id) values (1000)`, "rows", "rows"},
		"not counted":        {"sequence", not, `insert into births default values`, "", "rows"},
		"rolled back":        {"sequence", counts, `begin; insert into births default values; rollback`, "", ""},
		"an odd row":         {"declared", not, `insert into births (born_at) values (null)`, "", ""},
		"a sweep is due":     {"declared", not, `insert into births (born_at) values (null); update tidemark.worker_cursor set sweep = sweep || jsonb_build_object('done_at', now() - interval '1 hour') where worker = 'w'`, "sweep", "sweep"},
		"a gate":             {"sequence", not, `select tidemark.gate_set('worker.w.enabled', false)`, "closed", "closed"},
		"counts were reset":  {"sequence", not, `select pg_stat_reset_single_table_counters('births'::regclass); insert into births default values`, "rows", "rows"},
		"a captured table":   {"capture", not, `insert into births default values`, "rows", "rows"},
		"the table is gone":  {"sequence", not, `drop table births cascade`, "unreadable", "unreadable"},
		"its rows are taken": {"clock", not, `delete from births`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			s, app := tail(t, db, c.safety, ""), open(t, db, "app")
			if c.safety == "capture" {
				s.capture()
			}
			write := func(sql string) {
				t.Helper()
				app.exec(sql)
				app.exec(`select pg_stat_force_next_flush()`)
				app.exec(`select`) // when it is idle after this one, it has flushed
			}
			write(`insert into births (born_at) select now() - interval '1 day' from generate_series(1, 3)`)
			d := asleep(s)
			s.rewrite("poll", "extract(epoch from clock_timestamp())", "0") // the poll checks no table as a whole
			why, counted := d.look(nil)
			if why != "" || (counted == nil) != (c.safety == "capture") {
				t.Fatalf("first it says %q, and counted %v", why, counted)
			}
			app.exec(c.counts)
			write(c.change)
			if why, _ := d.look(counted); why != c.known {
				t.Errorf("with what was counted it says %q, want %q", why, c.known)
			}
			if why, _ := d.look(nil); why != c.unknown {
				t.Errorf("with nothing it says %q, want %q", why, c.unknown)
			}
			if why == "" && c.unknown == "" { // it beats all the same
				s.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '1 hour' where executor_id = 'w/births/0'`)
				d.look(counted)
				s.wantRows(`select (last_beat_at > now() - interval '1 minute')::text from tidemark.heartbeat where executor_id = 'w/births/0'`, "true")
			}
		})
	}
}
