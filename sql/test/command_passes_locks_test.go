package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CM9: passes, a pause and a removal of the topic wait for one another, and never in a circle. Whatever the order of the pages, and that
// of the rows in their table, each locks leases, then cursors, in the order of the partitions: one that waits has nothing of those behind.
func TestCommandPassesLockInOrder(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, 3)
	holder, other, looks := open(t, db, "holder"), open(t, db, "other"), open(t, db, "looks")
	// The first one's rows are the last in their tables, which are read in the order of their rows where a function does not forbid it.
	other.exec(`set enable_indexscan = off; set enable_bitmapscan = off`)
	p.exec(`update tidemark.heartbeat set executor_id = executor_id where executor_id = 'commands/kafka:events/0'`)
	p.exec(`update tidemark.worker_cursor set shard = shard where worker = 'commands' and shard = 0`)
	const (
		cursors = `from tidemark.worker_cursor where worker = 'commands' and source = 'kafka:events' and shard = any ($1) for update skip locked`
		leases  = `from tidemark.heartbeat where executor_id = any (select 'commands/kafka:events/' || unnest($1::integer[])) for update skip locked`
		removes = `select tidemark.worker_source_remove('commands', 'kafka:events', 'why')::text`
	)
	passes := func(order ...int) string {
		var pages []string
		for _, n := range order {
			pages = append(pages, p.page(n, 0))
		}
		return `select tidemark.command_passes('[` + strings.Join(pages, ",") + `]', '1 minute')::text`
	}
	for _, c := range []struct{ name, rows, statement, refused string }{
		{"passes, at cursors", cursors, passes(0, 1, 2), ""},
		{"passes the other way, at cursors", cursors, passes(2, 1, 0), ""},
		{"a pause, at cursors", cursors, `select tidemark.worker_pause('commands', true, 'why')::text`, ""},
		{"a removal, at cursors", cursors, removes, "TM005"},
		{"passes, at leases", leases, passes(0, 1, 2), ""},
		{"passes the other way, at leases", leases, passes(2, 1, 0), ""},
		{"a removal, at leases", leases, removes, "TM005"},
	} {
		for n, behind := range [][]int{{1, 2}, {2}} {
			holder.begin()
			holder.exec(`select `+c.rows, []int{n})
			other.begin()
			waits := later[string](other, c.statement)
			holder.waitsFor(other)
			equal(t, c.name, one[int](looks, `with l as (select `+c.rows+`) select count(*)::int from l`, behind), len(behind))
			holder.rollback()
			_, err := waits()
			if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) {
				equal(t, c.name, refused.Code, c.refused)
			} else if err != nil || c.refused != "" {
				t.Errorf("%s: %v", c.name, err)
			}
			other.rollback()
		}
	}
}

// CM9: a pause that comes while passes are under way does not wait for their commands, and takes back what they did.
func TestPauseBesideCommandPasses(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, 2)
	holder, operator := open(t, db, "holder"), open(t, db, "operator")
	holder.begin()
	holder.exec(`insert into app.invoice (id) values (1)`)
	pages := []string{p.page(1, 0), p.page(0, 0, p.of(p.service, "charge", 0, 0, "a", `{"id": 1}`, `{}`))}
	passed := later[json.RawMessage](p.session, `select tidemark.command_passes($1::jsonb, '1 minute')`, "["+strings.Join(pages, ",")+"]")
	holder.waitsFor(p.session)
	operator.exec(`set statement_timeout = '10s'`)
	operator.exec(`select tidemark.worker_pause('commands', true, 'why')`)
	holder.rollback()
	if got, err := passed(); code(err) != "TM009" {
		t.Errorf("%s %v", got, err)
	}
	p.wantInvoices()
	p.wantPasses([]string{"closed paused"}, p.page(1, 0))
	operator.exec(`select tidemark.worker_pause('commands', false, 'why')`)
	p.wantPasses([]string{`ran 0 []`, `ran 1 {"processed": 1} []`}, pages...)
	p.wantInvoices("1")
}

// CM9: a gate that closes while a later command of a pass runs takes back the earlier ones of its service, too: also those before a
// refused record, which ran by themselves.
func TestGateClosesAfterACommandOfAPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, 1)
	holder, operator := open(t, db, "holder"), open(t, db, "operator")
	page := p.page(0, 0, p.of(p.service, "charge", 0, 0, "a", `{"id": 1}`, `{}`), p.of(p.service, "charge", 0, 1, "b", `{}`, `{"refused": {"code": "payload.schema_violation", "message": "no"}}`),
		p.of(p.other, "charge", 0, 2, "c", `{"id": 2}`, `{}`))
	gate := "commands." + p.service.name + ".enabled"
	holder.begin()
	holder.exec(`insert into app.invoice (id) values (2)`)
	passed := later[json.RawMessage](p.session, `select tidemark.command_passes($1::jsonb, '1 minute')`, "["+page+"]")
	holder.waitsFor(p.session)
	operator.exec(`select tidemark.gate_set($1, false)`, gate)
	holder.rollback()
	if got, err := passed(); code(err) != "TM009" || !strings.Contains(err.Error(), gate) {
		t.Errorf("%s %v", got, err)
	}
	p.wantInvoices()
	p.wantRows(`select idempotency_key from tidemark.command_claim`)
	operator.exec(`select tidemark.gate_set($1, true)`, gate)
	p.wantPasses([]string{`ran 3 {"rejected": 1, "processed": 2} []`}, page)
	p.wantInvoices("1", "2")
}

// CM9: a pause that comes while parked commands are tried takes back what they did.
func TestPauseBesideRetries(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, 1)
	holder, operator := open(t, db, "holder"), open(t, db, "operator")
	p.lanes("k1")
	for _, retry := range []string{`select tidemark.command_retry_batch(array[$1], '{k11}', 50)`, `select tidemark.command_retry_one($1, 'k11', false)`} {
		holder.begin()
		holder.exec(`insert into app.invoice (id) values (11)`)
		tried := later[json.RawMessage](p.session, retry, p.name)
		holder.waitsFor(p.session)
		operator.exec(`select tidemark.worker_pause('commands', true, 'why')`)
		holder.rollback()
		if got, err := tried(); code(err) != "TM009" || !strings.Contains(err.Error(), "paused") {
			t.Errorf("%s: %s %v", retry, got, err)
		}
		p.refused("TM009", "paused", retry, p.name)
		p.wantInvoices()
		operator.exec(`select tidemark.worker_pause('commands', false, 'why')`)
	}
	p.wantRows(retryBatch, "k11 processed")
	p.wantInvoices("11")
}

// CM9: a gate that closes while the end of a retry waits takes the retry back, in a batch as alone.
func TestGateClosesWhileARetryIsReleased(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, 1)
	holder, operator := open(t, db, "holder"), open(t, db, "operator")
	p.lanes("k1")
	gate := "commands." + p.name + ".enabled"
	for _, retry := range []string{`select tidemark.command_retry_batch(array[$1], '{k11}', 50)`, `select tidemark.command_retry_one($1, 'k11', false)`} {
		holder.begin()
		holder.exec(`lock table tidemark.command_turn in row share mode`)
		tried := later[json.RawMessage](p.session, retry, p.name)
		holder.waitsFor(p.session)
		operator.exec(`select tidemark.gate_set($1, false)`, gate)
		holder.rollback()
		if got, err := tried(); code(err) != "TM009" {
			t.Errorf("%s: %s %v", retry, got, err)
		}
		p.wantInvoices()
		operator.exec(`select tidemark.gate_set($1, true)`, gate)
	}
}

// CM9: a gate that closes, or a pause that comes, while a record is refused, parked or run dry takes that back.
func TestGateClosesWhileNothingRuns(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	p := sharingOn(t, db, 1)
	holder, operator := open(t, db, "holder"), open(t, db, "operator")
	gate := func(name string) [2]string {
		return [2]string{fmt.Sprintf(`select tidemark.gate_set('%s', false)`, name), fmt.Sprintf(`select tidemark.gate_set('%s', true)`, name)}
	}
	for name, kind := range map[string]struct{ call, waits string }{
		"refused": {
			p.of(p.service, "charge", 0, 0, "a", `{"id": 1}`, `{"refused": {"code": "identity.key_unknown", "message": "no"}}`),
			`insert into tidemark.command_record (why, topic, topic_id, partition, "offset") values ('dead_letter', 'events', 'T', 0, 0)`,
		},
		"off": {
			p.of(p.service, "off", 0, 0, "a", `{"id": 1}`, `{}`),
			fmt.Sprintf(`insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, via, processed_at, expires_at)
				values ('%s', 'a', '', 'processed', gen_random_uuid(), 'off', 1, 'psql', now(), now())`, p.name),
		},
		"dry": {p.of(p.service, "dry", 0, 0, "a", `{"id": 1}`, `{}`), `insert into app.invoice (id) values (1)`},
	} {
		for _, closes := range [][2]string{
			gate("commands." + p.name + ".enabled"), gate("commands.enabled"),
			{`select tidemark.worker_pause('commands', true, 'why')`, `select tidemark.worker_pause('commands', false, 'why')`},
		} {
			holder.begin()
			holder.exec(kind.waits)
			passed := later[json.RawMessage](p.session, `select tidemark.command_passes($1::jsonb, '1 minute')`, "["+p.page(0, 0, kind.call)+"]")
			holder.waitsFor(p.session)
			operator.exec(closes[0])
			holder.rollback()
			if got, err := passed(); code(err) != "TM009" {
				t.Errorf("%s, %s: %s %v", name, closes[0], got, err)
			}
			p.wantRows(cursorsOf, "0 0 0")
			p.wantRows(`select 'result' from tidemark.outbox where domain = 'commands' union all select 'claim' from tidemark.command_claim
				union all select 'record' from tidemark.command_record union all select 'letter' from tidemark.dead_letter`)
			operator.exec(closes[1])
		}
	}
}
