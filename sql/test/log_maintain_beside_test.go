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
