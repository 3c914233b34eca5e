package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// partitions are some of one topic, whose cursors one owner has.
type partitions struct {
	*partition
	epochs map[int]int64
	other  *service
}

// sharing has so many partitions and two services, of which other is the second. Both have the commands charge, live, dry, in dry run,
// and off.
func sharing(t *testing.T, count int) *partitions {
	t.Helper()
	return sharingOn(t, tidemarktest.NewDB(t), count)
}

func sharingOn(t *testing.T, db *tidemarktest.DB, count int) *partitions {
	t.Helper()
	s := serve(t, db)
	p := &partitions{partition: &partition{service: s}, epochs: map[int]int64{}, other: &service{session: s.session, name: s.name + "b"}}
	role := "tidemark_service_" + p.other.name
	t.Cleanup(func() { s.exec(`drop owned by "` + role + `"; drop role "` + role + `"`) })
	s.exec(`select tidemark.service_set($1), tidemark.command_allow($1, 'shop', tenants => '{*}'), tidemark.gate_set('commands.' || $1 || '.enabled', true)`, p.other.name)
	s.exec(`grant usage on schema app to "` + role + `"; grant all on all tables in schema app to "` + role + `"`)
	s.exec(`select tidemark.route_set('others', jsonb_build_object('domain', 'commands', 'type', 'result.' || $1::text, 'target_kind', 'notify', 'target_ref', 'results', 'enabled', true, 'dry_run', false))`, p.other.name)
	for _, of := range []*service{s, p.other} {
		const charge = `{"function": "app.charge", "payload_schema": {"type": "object", "required": ["id"]}}`
		for _, name := range []string{"charge", "dry", "off"} {
			of.command(name, charge)
		}
		of.command("charge", `{"enabled": true, "dry_run": false}`)
		of.command("dry", `{"enabled": true}`)
	}
	for n := range count {
		s.exec(`select tidemark.command_partition('events', $1, 'T', 0, 100)`, n)
		p.epochs[n] = one[int64](s.session, `select epoch from tidemark.claim('commands', 'me', '1 minute', 'kafka:events', $1)`, n)
	}
	return p
}

// page is that of a partition, from an offset on.
func (p *partitions) page(partition int, from int64, calls ...string) string {
	return fmt.Sprintf(`{"source": "kafka:events", "shard": %d, "epoch": %d, "topic_id": "T", "from": %d, "next": %d, "behind": 0, "calls": [%s]}`,
		partition, p.epochs[partition], from, from+int64(len(calls)), strings.Join(calls, ","))
}

// of is a record of a command of a service in a partition.
func (p *partitions) of(s *service, command string, partition int, offset int64, key, payload, changes string) string {
	p.t.Helper()
	return one[string](p.session, `select ($1::jsonb || jsonb_build_object('service', $2::text, 'command', $3::text, 'partition', $4::int) || $5::jsonb)::text`,
		p.record(offset, key, payload, `{}`), s.name, command, partition, changes)
}

// passes makes the passes of these pages in one call, and returns status, next and result of each.
func (p *partitions) passes(pages ...string) ([]string, error) {
	p.t.Helper()
	var got []string
	err := p.conn.QueryRow(p.t.Context(), `select array(select concat_ws(' ', s ->> 'status', coalesce(s ->> 'next', s ->> 'detail'), s ->> 'result', s ->> 'letters')
		from jsonb_array_elements(tidemark.command_passes($1::jsonb, '1 minute')) s)`, "["+strings.Join(pages, ",")+"]").Scan(&got)
	return got, err
}

func (p *partitions) wantPasses(want []string, pages ...string) {
	p.t.Helper()
	if got, err := p.passes(pages...); err != nil || !cmp.Equal(got, want) {
		p.t.Errorf("got %q %v, want %q", got, err, want)
	}
}

func (p *partitions) wantRefused(code string, pages ...string) *pgconn.PgError {
	p.t.Helper()
	got, err := p.passes(pages...)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != code {
		p.t.Fatalf("got %q %v, want %s", got, err, code)
	}
	return refused
}

const cursorsOf = `select shard || ' ' || watermark_id || ' ' || events_seen from tidemark.worker_cursor where worker = 'commands' and source = 'kafka:events' order by 1`

// CM4, CM7: pages of several partitions take effect together, and tell of each partition what its own pass would have told.
func TestCommandPasses(t *testing.T) {
	t.Parallel()
	p := sharing(t, 4)
	a := []string{p.of(p.service, "charge", 0, 0, "a", `{"id": 1}`, `{}`), p.of(p.service, "charge", 0, 1, "b", `{}`, `{}`)}
	b := []string{p.of(p.other, "charge", 1, 0, "a", `{"id": 2}`, `{}`), p.of(p.other, "charge", 1, 1, "c", `{"id": 3}`, `{}`)}
	// One that fails takes back all, and is told by its position among all.
	refused := p.wantRefused("23505", p.page(0, 0, a...), p.page(1, 0, b...), p.page(2, 0, p.of(p.service, "charge", 2, 0, "d", `{"id": 1}`, `{}`)))
	if refused.ColumnName != "5" || refused.DataTypeName != "terminal" || refused.ConstraintName != "sql.constraint" {
		t.Errorf("%+v", refused)
	}
	p.wantInvoices()
	p.wantRows(cursorsOf, "0 0 0", "1 0 0", "2 0 0", "3 0 0")
	p.wantRows(`select 'result' from tidemark.outbox union all select 'claim' from tidemark.command_claim union all select 'record' from tidemark.command_record`)

	// One key in two partitions is a duplicate. A page without records moves its cursor, and renews its lease.
	p.exec(`update tidemark.heartbeat set lease_until = clock_timestamp() + interval '1 second' where executor_id like 'commands/%'`)
	gap := strings.Replace(p.page(3, 0), `"next": 0`, `"next": "09"`, 1)
	p.wantPasses([]string{`ran 2 {"rejected": 1, "processed": 1} []`, `ran 2 {"processed": 2} []`, `ran 2 {"duplicate": 1, "failed_terminal": 1} [1]`, `ran 9 []`},
		p.page(0, 0, a...), p.page(1, 0, b...), p.page(2, 0, p.of(p.service, "charge", 2, 0, "a", `{"id": 1}`, `{}`), p.of(p.service, "charge", 2, 1, "a", `{"id": 1}`, `{"fingerprint": "00"}`)), gap)
	p.wantInvoices("1", "2", "3")
	p.wantRows(`select distinct by::text from app.invoice order by 1`, "tidemark_service_"+p.name, "tidemark_service_"+p.other.name)
	p.wantRows(cursorsOf, "0 2 2", "1 2 2", "2 2 2", "3 9 0")
	p.wantRows(`select count(*)::text from tidemark.heartbeat where executor_id like 'commands/%' and lease_until > clock_timestamp() + interval '50 seconds'`, "4")
	p.wantRows(`select shard || ' ' || (last_run_summary ->> 'shard') || ' ' || (last_run_summary ? 'outcomes') from tidemark.worker_cursor where worker = 'commands' and source = 'kafka:events' order by 1`,
		"0 0 false", "1 1 false", "2 2 false", "3 3 false")
}

// CM8, CM9: a partition that was taken over, or is elsewhere, takes back the passes of all; a gate of a service holds only the partitions with its records.
func TestCommandPassesApart(t *testing.T) {
	t.Parallel()
	p := sharing(t, 3)
	mine := p.page(0, 0, p.of(p.service, "charge", 0, 0, "a", `{"id": 1}`, `{}`))
	second := p.page(1, 0, p.of(p.other, "charge", 1, 0, "b", `{"id": 2}`, `{}`), p.of(p.service, "charge", 1, 1, "c", `{"id": 3}`, `{}`))

	old := p.epochs[1]
	p.epochs[1] = one[int64](p.session, `select epoch from tidemark.claim('commands', 'me', '1 minute', 'kafka:events', 1)`)
	_ = p.wantRefused("TM011", mine, second)
	second = strings.Replace(second, fmt.Sprintf(`"epoch": %d`, old), fmt.Sprintf(`"epoch": %d`, p.epochs[1]), 1)
	_ = p.wantRefused("TM012", mine, strings.Replace(second, `"topic_id": "T", "from"`, `"topic_id": "U", "from"`, 1))
	_ = p.wantRefused("TM012", mine, strings.Replace(second, `"from": 0`, `"from": 1`, 1))
	_ = p.wantRefused("TM005", mine, mine)
	_ = p.wantRefused("TM005", mine, strings.Replace(mine, `"shard": 0`, `"shard": "0"`, 1))
	_ = p.wantRefused("TM005", mine, strings.Replace(second, `"next": 2`, `"next": -1`, 1))
	for _, way := range []string{"alone", "overdue"} {
		p.refused("TM005", "of 2 partitions", `select tidemark.command_passes($1::jsonb, '1 minute', $2)`, "["+mine+","+p.page(1, 0)+"]", way)
	}
	var many []string
	for n := range int64(26) {
		many = append(many, p.of(p.service, "charge", 0, n, fmt.Sprint("m", n), fmt.Sprintf(`{"id": %d}`, 100+n), `{}`))
	}
	_ = p.wantRefused("TM005", p.page(0, 0, many...), p.page(1, 0, many...))
	p.wantInvoices()
	p.wantRows(cursorsOf, "0 0 0", "1 0 0", "2 0 0")

	// Until what was parked is committed, no session can release another: nothing that may take long comes after it, of any partition.
	off := []string{p.of(p.service, "charge", 0, 0, "x", `{"id": 9}`, `{}`), p.of(p.service, "off", 0, 1, "off", `{"id": 9}`, `{}`)}
	p.begin()
	p.wantPasses([]string{`ran 2 {"processed": 1, "failed_retryable": 1} []`, `ran 0 []`, `ran 0 []`}, p.page(0, 0, off...), second, p.page(2, 0))
	p.rollback()

	p.exec(`select tidemark.gate_set('commands.' || $1 || '.enabled', false)`, p.other.name)
	p.wantPasses([]string{`ran 1 {"processed": 1} []`, `waiting 0 []`, `ran 0 []`}, mine, second, p.page(2, 0))
	p.exec(`select tidemark.gate_set('commands.enabled', false)`)
	p.wantPasses([]string{`closed commands.enabled`, `closed commands.enabled`}, second, p.page(2, 0))
	p.exec(`select tidemark.gate_set('commands.enabled', true), tidemark.gate_set('commands.' || $1 || '.enabled', true)`, p.other.name)
	p.wantPasses([]string{`ran 2 {"processed": 2} []`}, second)
	p.wantInvoices("1", "2", "3")
}

// What a command leaves in the session does not reach that of another service behind it, of another partition.
func TestCommandPassesBetweenServices(t *testing.T) {
	t.Parallel()
	p := sharing(t, 2)
	victim := p.of(p.other, "charge", 1, 0, "b", `{"id": 2, "sql": "insert into app.flag select 'seen ' || current_setting('app.left', true)"}`, `{}`)
	for n, leaves := range []string{
		`prepare p as select 1`, `create temporary table app_t (id int)`, `declare c cursor with hold for select 1`,
	} {
		attacker := p.of(p.service, "charge", 0, 0, "a", fmt.Sprintf(`{"id": 1, "sql": %q}`, leaves), `{}`)
		if got, err := p.passes(p.page(0, 0, attacker), p.page(1, 0, victim)); err == nil {
			t.Errorf("%d: %s: got %q", n, leaves, got)
		}
		p.wantInvoices()
		p.wantRows(`select name from app.flag`)
	}
	attacker := p.of(p.service, "charge", 0, 0, "a", `{"id": 1, "sql": "select set_config('app.left', 'behind', true)"}`, `{}`)
	p.wantPasses([]string{`ran 1 {"processed": 1} []`, `ran 1 {"processed": 1} []`}, p.page(0, 0, attacker), p.page(1, 0, victim))
	p.wantRows(`select name from app.flag`, "seen ")
}

// CM4: passes of several partitions in one call do what they do one after the other: effects, claims, results, letters, what is parked,
// and cursors.
func TestCommandPassesEqualOneByOne(t *testing.T) {
	t.Parallel()
	p := sharing(t, 3)
	id := 0
	rapid.Check(t, func(rt *rapid.T) {
		p.begin()
		defer p.rollback()
		gate := rapid.Bool().Draw(rt, "gate")
		p.exec(`select tidemark.gate_set('commands.' || $1 || '.enabled', $2)`, p.other.name, gate || rapid.Bool().Draw(rt, "open"))
		calls := make([][]string, 3)
		for n := range calls {
			for offset := range rapid.IntRange(0, 5).Draw(rt, "records") {
				id++
				of := rapid.SampledFrom([]*service{p.service, p.service, p.other}).Draw(rt, "service")
				key := fmt.Sprint(n, "-", rapid.IntRange(0, 4).Draw(rt, "key"))
				lane := fmt.Sprintf(`{"key": "lane%d-%d"`, n, rapid.IntRange(0, 1).Draw(rt, "lane"))
				payload := fmt.Sprintf(`{"id": %d}`, id)
				switch rapid.IntRange(0, 9).Draw(rt, "kind") {
				case 0:
					calls[n] = append(calls[n], p.of(of, "charge", n, int64(offset), key, payload, lane+`, "refused": {"code": "envelope.invalid", "message": "no"}}`))
				case 1:
					calls[n] = append(calls[n], p.of(of, "off", n, int64(offset), key, payload, lane+"}"))
				case 2:
					calls[n] = append(calls[n], p.of(of, "dry", n, int64(offset), key, payload, lane+"}"))
				case 3:
					calls[n] = append(calls[n], p.of(of, "unknown", n, int64(offset), key, payload, lane+"}"))
				case 4:
					calls[n] = append(calls[n], p.of(of, "charge", n, int64(offset), key, `{}`, lane+"}"))
				case 5: // the same again, but for its id
					calls[n] = append(calls[n], p.of(of, "charge", n, int64(offset), key, payload, lane+`, "fingerprint": "0011"}`))
				default:
					calls[n] = append(calls[n], p.of(of, "charge", n, int64(offset), key, payload, lane+"}"))
				}
			}
		}
		p.exec(`savepoint before`)
		together := p.passAll(rt, calls, true)
		p.exec(`rollback to savepoint before`)
		oneByOne := p.passAll(rt, calls, false)
		if diff := cmp.Diff(oneByOne, together); diff != "" {
			rt.Errorf("(-one by one +together)\n%s", diff)
		}
	})
}

// passAll passes the calls of each partition as far as they go, and tells what has come of it.
func (p *partitions) passAll(t *rapid.T, calls [][]string, together bool) map[string][]string {
	next := make([]int64, len(calls))
	told := map[string][]string{}
	for moved := true; moved; {
		moved = false
		var pages []string
		var of []int
		round := func() {
			var summaries []byte
			if err := p.conn.QueryRow(p.t.Context(), `select tidemark.command_passes($1::jsonb, '1 minute')`, "["+strings.Join(pages, ",")+"]").Scan(&summaries); err != nil {
				t.Fatal(err)
			}
			var all []struct {
				Status   string
				Next     int64
				Outcomes []string
				Letters  []int64
			}
			if err := json.Unmarshal(summaries, &all); err != nil || len(all) != len(of) {
				t.Fatal(string(summaries), err)
			}
			for i, s := range all {
				n := of[i]
				moved = moved || s.Next > next[n]
				for _, o := range s.Outcomes {
					told[fmt.Sprint("told ", n)] = append(told[fmt.Sprint("told ", n)], o[:strings.LastIndex(o, "|")])
				}
				for _, l := range s.Letters {
					told[fmt.Sprint("letters ", n)] = append(told[fmt.Sprint("letters ", n)], fmt.Sprint(l))
				}
				if next[n] = s.Next; next[n] == int64(len(calls[n])) || s.Status == "waiting" {
					told[fmt.Sprint("end ", n)] = []string{fmt.Sprint(s.Status, s.Next)}
				}
			}
			pages, of = nil, nil
		}
		for n := range calls {
			for again := true; again; {
				again = false
				if was := next[n]; was < int64(len(calls[n])) {
					pages, of = append(pages, p.page(n, was, calls[n][was:]...)), append(of, n)
					if !together {
						round()
						again = next[n] > was
					}
				}
			}
		}
		if len(pages) > 0 {
			round()
		}
	}
	for name, query := range map[string]string{
		"effects": `select id || ' ' || by from app.invoice order by id`,
		"claims": `select concat_ws(' ', service, idempotency_key, state, error_code, event_id, partition, "offset", attempts, encode(fingerprint, 'hex'))
			from tidemark.command_claim order by 1`,
		"parked":  `select concat_ws(' ', service, key, idempotency_key, next_attempt_at = 'infinity') from tidemark.command_parked order by service, key, position`,
		"records": `select concat_ws(' ', why, partition, "offset", document ->> 'status') from tidemark.command_record order by 1`,
		"letters": `select concat_ws(' ', error_code, event_snapshot ->> 'partition', event_snapshot ->> 'offset') from tidemark.dead_letter order by 1`,
		"cursors": cursorsOf,
	} {
		told[name] = one[[]string](p.session, `select array(`+query+`)`)
	}
	for n := range calls {
		told[fmt.Sprint("results ", n)] = one[[]string](p.session, `select array(select concat_ws(' ', o.type, o.key, o.payload ->> 'status', o.payload ->> 'error_code', o.payload ->> 'reason', o.payload ->> 'event_id')
			from tidemark.outbox o where o.key like $1 order by o.seq)`, fmt.Sprint("lane", n, "-%"))
	}
	return told
}
