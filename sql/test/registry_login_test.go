package test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// deeds are statements of a table's owner whose outcome depends on the login, or records it; text that an owner of a table
// could have a superuser's maintenance run. The effect of each is a row that counts.
var deeds = map[string]string{
	"emit":                        `select tidemark.emit('open', 'x')`,
	"emit, claiming an actor":     `select tidemark.emit('open', 'x', actor => 'ann')`,
	"emit, with a key":            `select tidemark.emit('open', 'x', idempotency_key => 'k')`,
	"emit, restricted":            `select tidemark.emit('closed', 'x')`,
	"emit, not registered":        `select tidemark.emit('open', 'unknown')`,
	"emit_strict":                 `select tidemark.emit_strict('closed', 'x')`,
	"emit_many":                   `select * from tidemark.emit_many('[{"domain": "open", "type": "x"}, {"domain": "closed", "type": "x"}]')`,
	"emit_many_strict":            `select * from tidemark.emit_many_strict('[{"domain": "closed", "type": "x"}]')`,
	"inbound_emit":                `select tidemark.inbound_emit('called', '{}')`,
	"inbound_emit, dry run":       `select tidemark.inbound_emit('dry', '{}')`,
	"messages of errors":          `select detail from tidemark.event_evidence(1)`,
	"a setting":                   `update tidemark.setting set value = '1' where key = 'emit.payload_limit'`,
	"gate_set":                    `select tidemark.gate_set('routes.enabled', false)`,
	"stage_set":                   `select tidemark.stage_set('dry_run', 'why')`,
	"domain_grant":                `select tidemark.domain_grant('closed', session_user)`,
	"heartbeat_register":          `select tidemark.heartbeat_register('nightly')`,
	"heartbeat_daemon":            `select tidemark.heartbeat_daemon('d')`,
	"finding_ack":                 `select tidemark.finding_ack(id, 'mine') from tidemark.finding`,
	"dead_letter_discard":         `select tidemark.dead_letter_discard(id, 'mine') from tidemark.dead_letter`,
	"dead_letter_settle":          `select tidemark.dead_letter_settle(id, 'sent', null, null, null) from tidemark.dead_letter`,
	"route_replay":                `select tidemark.route_replay('app', 'why', from_seq => 1)`,
	"source_set":                  `select tidemark.source_set('t', '{"table": "e.orders", "id_column": "id", "safety": "sequence"}')`,
	"a pack, signed as another":   `insert into tidemark.pack (pack, version, checksum, installed_by) values ('p', '1', '', 'postgres')`,
	"a worker":                    `select tidemark.worker_set('other')`,
	"a route, by its table":       `update tidemark.outbound_route set description = 'x'`,
	"a kind of executor":          `insert into tidemark.heartbeat_kind values ('mine')`,
	"a pause":                     `select tidemark.worker_pause('default', true, 'why')`,
	"a rewind of a worker":        `select tidemark.worker_rewind('default', 0, 'why')`,
	"forbidden keys of a payload": `delete from tidemark.forbidden_key`,
}

// mallory owns a table with an index over a function of hers, which runs what e.todo has and notes what came of it.
func mallory(t *testing.T, db *tidemarktest.DB) (super session, her tailing) {
	t.Helper()
	super = live(t, db)
	her = login(t, db, "mallory", "tidemark_admin, tidemark_emitter")
	super.exec(`create schema e authorization ` + her.name)
	her.exec(`
		create table e.t (id int, what text) with (autovacuum_enabled = off); insert into e.t values (1, 'a');
		create table e.orders (id int primary key); insert into e.orders values (1);
		create table e.todo (name text, deed text, result text);
		create function e.all() returns void language plpgsql as $$
		declare d record;
		begin
			for d in select * from e.todo where result is null loop
				begin
					execute d.deed;
					update e.todo set result = 'done' where name = d.name;
				exception when others then
					update e.todo set result = sqlstate where name = d.name;
				end;
			end loop;
		end $$;
		create function e.run(text) returns text language plpgsql immutable as $$ begin perform e.all(); return $1; end $$;
		create index on e.t (e.run(what)); create materialized view e.m as select e.run(what) from e.t`)
	super.exec(`select tidemark.type_set(d, 'x') from unnest(array['open', 'closed']) d;
		select tidemark.domain_set('closed', '{"restricted": true}');
		select tidemark.type_set('test', 'tick');
		select tidemark.inbound_route_set(c, jsonb_build_object('source_object_kind', 'function', 'source_schema', 'e', 'source_table', c,
			'sql_event', 'call', 'domain', 'closed', 'type', 'x', 'enabled', true, 'dry_run', c = 'dry', 'fail_closed', false)) from unnest(array['called', 'dry']) c;
		select tidemark.inbound_route_set(o, jsonb_build_object('source_schema', 'e', 'source_table', 'orders', 'sql_event', o,
			'domain', 'open', 'type', 'x', 'enabled', true, 'dry_run', o = 'update', 'fail_closed', false)) from unnest(array['insert', 'update']) o;
		select tidemark.capture_attach('e.orders', 'test');
		insert into tidemark.finding (kind, subject, severity, detail) values ('worker_failing', 'default', 'high', 'x')`)
	super.exec(`create or replace function receive(event jsonb) returns void language plpgsql as $$ begin perform (event ->> 'event_id')::int; end $$;
		update tidemark.outbound_route set retry_policy = '{"max_attempts": 1}'`)
	super.emit(1)
	super.pass()
	if n := one[int](super, `select count(*)::int from tidemark.dead_letter`); n != 1 {
		t.Fatalf("%d dead letters, want one", n)
	}
	return super, her
}

// quick are deeds that ask in the cheaper way: PostgreSQL refuses them itself where no transaction can be prepared.
var quick = []string{"emit", "emit, claiming an actor", "emit, with a key", "emit, restricted", "emit, not registered", "emit_strict"}

// does runs every deed by way of maintenance, and wants each refused and none to have had an effect.
func (s tailing) does(super session, how, maintenance string) {
	s.t.Helper()
	const traces = `select concat_ws(' ', (select count(*) from tidemark.outbox), (select count(*) from tidemark.audit), (select count(*) from tidemark.captured),
		(select count(*) from tidemark.emit_unregistered), (select count(*) from tidemark.pack), (select count(*) from tidemark.heartbeat),
		(select count(*) from tidemark.dead_letter where resolved_at is null), (select count(*) from tidemark.emit_key))`
	before := one[string](super, traces)
	s.exec(`delete from e.todo`)
	for name, deed := range deeds {
		s.exec(`insert into e.todo (name, deed) values ($1, $2)`, name, deed)
	}
	super.exec(maintenance)
	s.until(how+" runs it", `select count(*)::int from e.todo where result is null`, 0)
	for _, got := range s.lines(`select concat_ws(': ', name, result) from e.todo where result <> case
			when current_setting('max_prepared_transactions') = '0' and name in ('` + strings.Join(quick, "', '") + `') then '42501' else 'TM015' end order by 1`) {
		s.t.Errorf("%s: %s, want it refused as maintenance", how, got)
	}
	if after := one[string](super, traces); after != before {
		s.t.Errorf("%s: %s, want %s (events, audit, captured, unregistered, packs, heartbeats, open letters, keys)", how, after, before)
	}
}

// until polls a number until it is as wanted: what another process does shows in no other way.
func (s tailing) until(what, sql string, want int) {
	s.t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(time.Minute); one[int](s.session, sql) != want; <-poll.C {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// A function of an index runs as the owner of its table, in the session of whatever role maintains the table. Nothing that
// Tidemark decides or records by the login takes the one for the other.
func TestMaintenanceIsNoDeputy(t *testing.T) {
	t.Parallel()
	super, her := mallory(t, tidemarktest.NewDB(t))
	for how, maintenance := range map[string]string{
		"analyze":            `analyze e.t`,
		"with a role set":    `select set_config('role', session_user, false); analyze e.t; reset role`,
		"reindex":            `reindex table e.t`,
		"vacuum full":        `vacuum full e.t`,
		"create index":       `create index on e.t (e.run(what || 'x'))`,
		"materialized views": `refresh materialized view e.m`,
	} {
		her.does(super, how, maintenance)
	}
	// Each is a deed: by herself it is done, or refused for a reason of its own.
	for name, deed := range deeds {
		her.begin()
		if err := her.session.try(deed); err != nil && (err.Code == "TM015" || strings.HasPrefix(err.Code, "42") && name != "heartbeat_daemon" && name != "dead_letter_settle") {
			t.Errorf("%s: %v", name, err)
		}
		her.rollback()
	}
	her.wantRefused("TM014", deeds["emit, restricted"])
}

// What such a function writes into a captured table is captured like any other row: the capture names no login for it. So is what
// the apply worker of a subscription writes.
func TestMaintenanceIsCapturedAsUnknown(t *testing.T) {
	t.Parallel()
	super, her := mallory(t, tidemarktest.NewDB(t))
	for name, deed := range map[string]string{"captured": `insert into e.orders values (7)`, "dry run": `update e.orders set id = id + 100`} {
		her.exec(`insert into e.todo (name, deed) values ($1, $2)`, name, deed)
	}
	super.exec(`analyze e.t`)
	her.exec(`insert into e.orders values (9)`)
	super.wantRows(`select actor from tidemark.outbox where domain = 'open' order by seq`, "(unknown)", her.name)
	super.wantRows(`select actor || ' ' || outcome from tidemark.captured`, "(unknown) dry_run")
}

func TestAutovacuumIsNoDeputy(t *testing.T) {
	t.Parallel()
	server := testserver.New(t, devpg.Options{Settings: map[string]string{"autovacuum": "on", "autovacuum_naptime": "1s", "max_prepared_transactions": "0"}})
	super, her := mallory(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	her.exec(`insert into e.t select n, 'b' from generate_series(1, 100) n`)
	her.does(super, "autovacuum", `alter table e.t set (autovacuum_enabled = on, autovacuum_analyze_threshold = 0, autovacuum_analyze_scale_factor = 0)`)
}

// Asking costs a transaction nothing but time: it can be prepared in a session that listens or has listened, and stays
// read only.
func TestLoginLeavesNoTrace(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "app")
	s.exec(`select tidemark.type_set('open', 'x')`)
	for i, before := range []string{`listen a`, `unlisten *`, `discard all`} {
		s.exec(before)
		gid := db.Name + string(rune('a'+i))
		s.begin()
		s.exec(`select tidemark.emit('open', 'x')`)
		s.exec(`select tidemark.emit_many('[{"domain": "open", "type": "x"}]')`)
		s.prepare(gid)
		s.exec(`commit prepared '` + gid + `'`)
	}
	s.wantRows(`select count(*)::text from tidemark.outbox`, "6")
	s.exec(`begin read only`)
	s.exec(`select * from tidemark.event_evidence(1)`)
	s.commit()
	// A statement of that name that the client has prepared is its own affair, and gone.
	s.exec(`prepare tidemark_login as select 1`)
	s.exec(`select tidemark.emit('open', 'x')`)
	s.wantRows(`select name from pg_prepared_statements where name = 'tidemark_login'`)
}

// SE3: who logged in is asked in one place. Defaults of columns are signed by the audit of the same statement.
func TestLoginIsAskedOnce(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "catalog")
	s.wantRows(`select p.proname::text from `+ours+` and p.prosrc ~* 'session_user' order by 1`, "login")
	s.wantRows(`select c.relname::text from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'v' and pg_get_viewdef(c.oid) ~* 'session_user'`)
	s.wantRows(`select c.relname || '.' || a.attname from pg_attrdef d join pg_class c on c.oid = d.adrelid join pg_attribute a on a.attrelid = c.oid and a.attnum = d.adnum
		where c.relnamespace = 'tidemark'::regnamespace and pg_get_expr(d.adbin, d.adrelid) ~* 'session_user' order by 1`,
		"domain_emitter.granted_by", "heartbeat.registered_by", "migration.applied_by", "replay_job.requested_by", "source.created_by", "stage.changed_by")
}
