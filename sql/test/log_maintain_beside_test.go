package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What an operator has locked in an open transaction keeps no partition from being made or dropped.
func TestMaintainBesideAnOperator(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator := live(t, db), open(t, db, "operator")
	w.set("outbox.retention", "0")
	w.emit(1)
	w.next(1_000_000)
	w.emit(2)
	w.drain()
	w.exec(`select tidemark.finding_open('target_down', 'r1', 'high', 'for an operator')`)
	w.exec(`update tidemark.finding set opened_at = clock_timestamp() - interval '1 year', closed_at = clock_timestamp() - interval '1 year'`)
	operator.begin()
	operator.exec(`select from tidemark.finding for update`)
	w.wantMaintain("postponed rows another session holds rows ", "created outbox_p3000000 ", "dropped outbox_p0 ")
	operator.commit()
	w.wantMaintain("forgot finding 1 closed")
}

// Writers wait for a call only while it makes and drops partitions, and not for what it has to do besides.
func TestMaintainKeepsWritersWaitingLast(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`create table locked (mode text)`)
	w.rewrite("maintain_rows", "perform tidemark.command_findings();", `perform tidemark.command_findings();
		insert into public.locked select mode from pg_locks where pid = pg_backend_pid() and relation = 'tidemark.outbox'::regclass;`)
	w.exec(`grant insert on locked to tidemark_owner`)
	w.set("outbox.retention", "0")
	w.emit(1)
	w.next(1_000_000)
	w.emit(2)
	w.drain()
	w.wantMaintain("created outbox_p3000000 ", "dropped outbox_p0 ")
	w.wantRows(`select distinct mode from locked where mode !~ '^(Access|Row)Share|^RowExclusive'`, "ShareUpdateExclusiveLock")
}

// A replay or a worker that begins while maintain waits for its transaction, or after maintain's snapshot was taken, keeps the
// partition that it needs.
func TestMaintainKeepsWhatComesToBeNeeded(t *testing.T) {
	t.Parallel()
	for name, needs := range map[string]string{
		"replay 1":                   `select tidemark.route_replay('app', 'they lost it', from_seq => 1)`,
		"the cursor of worker late":  `select tidemark.worker_set('late', starts => 'start')`,
		"the cursor of worker other": `select tidemark.worker_set('other', starts => '1')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, operator, maintainer := live(t, db), open(t, db, "operator"), open(t, db, "maintainer")
			w.exec(`alter function tidemark.maintain_all() set lock_timeout = '1min'`) // this machine may be slow
			w.set("outbox.retention", "0")
			w.emit(1)
			w.next(1_000_000)
			w.emit(2)
			w.maintain() // all that is left to do is the drop
			w.drain()
			operator.begin()
			operator.exec(needs)
			kept := later[string](maintainer, `select detail from tidemark.maintain() where object = 'outbox_p0'`)
			w.waitsFor(maintainer)
			operator.commit()
			got, err := kept()
			if want := "needed from number 1 by " + name; err != nil || got != want {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
			w.wantRows(`select seq::text from tidemark.outbox order by 1`, "1", "1000000")
		})
	}
	t.Run("old snapshot", func(t *testing.T) {
		t.Parallel()
		w := live(t, tidemarktest.NewDB(t))
		w.set("outbox.retention", "0")
		w.emit(1)
		w.next(1_000_000)
		w.emit(2)
		w.drain()
		w.exec(`begin isolation level repeatable read`)
		w.wantMaintain("created outbox_p3000000 ", "kept outbox_p0 the isolation level is repeatable read, and must be read committed")
		w.commit()
		w.wantMaintain("dropped outbox_p0 ")
	})
}
