package test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// login is a session of a role of its own, a member of roles.
func login(t *testing.T, db *tidemarktest.DB, name string, roles string) tailing {
	t.Helper()
	role := "tm_" + name + "_" + strings.TrimPrefix(db.Name, "tidemark_test_")
	super := open(t, db, "superuser")
	super.exec(`create role ` + role + ` login`)
	if roles != "" {
		super.exec(`grant ` + roles + ` to ` + role)
	}
	t.Cleanup(func() { super.exec(`drop owned by ` + role + `; drop role ` + role) })
	s := tailing{open(t, db, role)}
	s.exec(`set session authorization ` + role)
	return s
}

// wantRefused runs a statement that must be refused with the code, and store nothing.
func (s tailing) wantRefused(code, sql string, args ...any) {
	s.t.Helper()
	if err := s.session.try(sql, args...); err == nil || err.Code != code {
		s.t.Errorf("%s: %s: %v, want %s", s.name, sql, err, code)
	}
}

// Each way in, by a role that may emit, but not into this domain.
func ways(domain string) []string {
	return []string{
		`select tidemark.emit('` + domain + `', 'x', '{}', actor => 'postgres')`,
		`select tidemark.emit('` + domain + `', 'x', '{}', idempotency_key => 'k')`,
		`select tidemark.emit_strict('` + domain + `', 'x')`,
		`select * from tidemark.emit_many('[{"domain": "` + domain + `", "type": "x", "actor": "postgres"}]')`,
		`select * from tidemark.emit_many_strict('[{"domain": "open", "type": "x"}, {"domain": "` + domain + `", "type": "x"}]')`,
		`select * from tidemark.emit_arrays(array['` + domain + `'], array['x'], actors => array['postgres'])`,
		`select * from tidemark.emit_arrays_strict(array['open', '` + domain + `'], array['x', 'x'])`,
	}
}

// An emitter writes the domains that are open or granted to it, by whatever way; what Tidemark and its packs say of
// themselves it cannot forge.
func TestDomainGrants(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	admin := login(t, db, "admin", "tidemark_admin")
	app, other, team := login(t, db, "app", "tidemark_emitter"), login(t, db, "other", "tidemark_emitter"), login(t, db, "team", "")
	admin.exec(`select tidemark.type_set(d, 'x') from unnest(array['open', 'shop', 'closed']) d;
		select tidemark.type_set('system', 'x'); select tidemark.domain_set('closed', '{"restricted": true}')`)
	for _, sql := range append(ways("system"), ways("closed")...) {
		app.wantRefused("TM014", sql)
		admin.wantRefused("TM014", sql)
	}
	admin.want(`select count(*) from tidemark.outbox`, "0")

	admin.exec(`select tidemark.domain_grant('shop', $1, 'the shop''s own')`, app.name)
	for _, sql := range ways("shop") {
		other.wantRefused("TM014", sql)
		app.exec(sql)
	}
	admin.want(`select count(*) from tidemark.outbox where domain = 'shop'`, "7")
	// A claim of a refused emit would block the key for the role that may.
	tailing{open(t, db, "superuser")}.want(`select count(*) from tidemark.emit_key`, "1")
	if _, err := tidemark.Emit(t.Context(), other.conn, tidemark.Event{Domain: "shop", Type: "x"}); !errors.Is(err, tidemark.ErrDomain) {
		t.Errorf("Emit: %v, want ErrDomain", err)
	}

	// By membership; a role that the session sets is not asked.
	open(t, db, "superuser").exec(`grant ` + team.name + ` to ` + other.name)
	admin.exec(`select tidemark.domain_grant('shop', $1)`, team.name)
	other.exec(ways("shop")[0])
	admin.exec(`select tidemark.domain_revoke('shop', $1, 'left')`, team.name)
	other.wantRefused("TM014", ways("shop")[0])

	// When the last grant is revoked, the domain stays restricted.
	admin.exec(`select tidemark.domain_revoke('shop', $1)`, app.name)
	app.wantRefused("TM014", ways("shop")[0])
	admin.exec(`select tidemark.domain_set('shop', '{"restricted": false}')`)
	other.exec(ways("shop")[0])

	admin.wantRefused("TM005", `select tidemark.domain_grant('system', $1)`, app.name)
	admin.wantRefused("TM005", `select tidemark.domain_grant('shop', 'tm_no_such_role')`)
	admin.wantRefused("TM004", `select tidemark.domain_grant('no such', $1)`, app.name)
	admin.wantRefused("TM004", `select tidemark.domain_revoke('shop', $1)`, app.name)
	admin.wantRefused("23514", `select tidemark.domain_set('system', '{"restricted": false}')`)
	app.wantRefused("42501", `select tidemark.domain_grant('closed', $1)`, app.name)
	app.wantRefused("42501", `insert into tidemark.domain_emitter (domain, role) values ('closed', session_user)`)
	admin.want(`select action, object, reason from tidemark.audit where action like 'domain_%' order by id limit 1`,
		"domain_grant domain shop the shop's own")
	// A type that is made later is as its domain is.
	admin.exec(`select tidemark.type_set('closed', 'later')`)
	app.wantRefused("TM014", `select tidemark.emit('closed', 'later')`)
}

// Whatever actor claims, the log has the role that logged in.
func TestEmittedBy(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	admin, app := login(t, db, "admin", "tidemark_admin"), login(t, db, "app", "tidemark_emitter")
	admin.exec(`select tidemark.type_set('shop', 'x')`)
	app.exec(`select tidemark.emit('shop', 'x', actor => 'postgres'), tidemark.emit('shop', 'x'), tidemark.emit('shop', 'x', actor => session_user);
		select tidemark.emit_many('[{"domain": "shop", "type": "x", "actor": "ann"}, {"domain": "shop", "type": "x"}]')`)
	admin.want(`select actor, emitted_by from tidemark.outbox order by seq`, "postgres "+app.name, app.name+" -", app.name+" -", "ann "+app.name, app.name+" -")
}

// What Tidemark says of itself still comes, in the session of any role that brings it about; routes and workers of an
// operator cannot be pointed at it.
func TestSystemDomainIsTidemarks(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "superuser")
	admin, x := login(t, db, "admin", "tidemark_admin"), login(t, db, "executor", "tidemark_executor")
	s.exec(`select tidemark.stage_set('live', 'a test')`)
	x.exec(`select tidemark.heartbeat_daemon('d')`)
	s.exec(`update tidemark.heartbeat set last_beat_at = clock_timestamp() - interval '1 hour' where executor_id = 'daemon/d'`)
	x.exec(`select * from tidemark.stale_check()`)
	admin.want(`select domain, type, actor, emitted_by from tidemark.outbox where type = 'queue_worker_silent'`, "system queue_worker_silent tidemark "+x.name)
	admin.wantRefused("23514", `select tidemark.inbound_route_set('r', '{"source_schema": "public", "source_table": "t", "sql_event": "insert", "domain": "system", "type": "queue_worker_silent"}')`)
	admin.wantRefused("23514", `select tidemark.worker_set('w', '{"source": "table", "handler": "emit", "handler_ref": "system/queue_worker_silent"}')`)
}

// An executor has no right to emit. What a worker makes of rows it makes under its lease.
func TestSourceEmitNeedsTheLease(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tailing{open(t, db, "operator")}
	s.exec(`create table births (id bigint generated always as identity primary key, name text); grant select on births to tidemark_executor;
		select tidemark.type_set('town', 'birth')`)
	s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
	s.worker("w", `{"handler": "emit", "handler_ref": "town/birth"}`)
	s.add("w")
	x := login(t, db, "executor", "tidemark_executor, tidemark_reader")
	x.wantRefused("42501", `select tidemark.emit('town', 'birth')`)
	const forge = `select tidemark.source_emit((select id from tidemark.worker where worker = 'w'), 'births', 0, $1, '[{"id": "1", "ts": null, "row": {"id": 1}}]')`
	x.wantRefused("TM011", forge, 7)
	x.wantRefused("TM011", forge, nil)
	var epoch int64
	if err := x.conn.QueryRow(t.Context(), `select epoch from tidemark.claim('w', 'me', '30 seconds', 'births', 0)`).Scan(&epoch); err != nil {
		t.Fatal(err)
	}
	x.wantRefused("TM011", forge, epoch-1)
	s.want(`select count(*) from tidemark.outbox`, "0")
	s.exec(`insert into births (name) values ('Ada')`)
	x.exec(`select tidemark.source_pass('w', 'births', 0, $1)`, epoch)
	s.want(`select count(*) from tidemark.outbox where domain = 'town'`, "1")
}

// An executor that holds the lease of a worker that makes events can make them of rows that are not there: the rows are read with
// its rights, and no other role sees them. SECURITY.md says so. Its events are of the worker's type and have its login as actor, whatever
// it writes into them.
func TestExecutorsEventsBearItsLogin(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := tailing{open(t, db, "operator")}
	s.exec(`create table births (id bigint generated always as identity primary key, name text); grant select on births to tidemark_executor;
		select tidemark.type_set('town', 'birth'), tidemark.type_set('town', 'other')`)
	s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
	s.worker("w", `{"handler": "emit", "handler_ref": "town/birth", "payload_columns": ["name"]}`)
	s.worker("plain", `{"handler": "sql", "handler_ref": "public.take"}`)
	s.add("w")
	s.add("plain")
	x := login(t, db, "executor", "tidemark_executor, tidemark_reader")
	claim := func(worker string) (epoch int64) {
		if err := x.conn.QueryRow(t.Context(), `select epoch from tidemark.claim($1, 'me', '30 seconds', 'births', 0)`, worker).Scan(&epoch); err != nil {
			t.Fatal(err)
		}
		return epoch
	}
	const forge = `select tidemark.source_emit((select id from tidemark.worker where worker = $1), 'births', 0, $2,
		'[{"id": "77", "ts": null, "domain": "town", "type": "other", "actor": "ann", "row": {"id": 77, "name": "forged", "type": "other", "actor": "ann", "secret": 1}}]')`
	x.exec(forge, "w", claim("w"))
	s.want(`select o.type, o.actor = $$`+one[string](x.session, `select session_user::text`)+`$$ as by_login, o.emitted_by, o.subject_table, o.subject_ref, o.payload, o.idempotency_key from tidemark.outbox o where domain = 'town'`,
		`birth true - public.births 77 {"id": 77, "name": "forged"} tidemark:source/w/births/77`)
	// A worker that makes no events has no type to make them of.
	x.wantRefused("TM001", forge, "plain", claim("plain"))
	for _, sql := range []string{
		`update tidemark.worker set handler_ref = 'town/other'`, `select tidemark.worker_set('w', '{"handler_ref": "town/other"}')`,
		`insert into tidemark.emit_key (domain, idempotency_key, event_id, created_at) values ('town', 'k', gen_random_uuid(), now())`,
	} {
		x.wantRefused("42501", sql)
	}
}

// A transaction whose snapshot is older than a revoke, a restriction or another change of the type does not emit by the rule of
// before, nor does it hold the operator up. One whose snapshot is of afterwards goes by the new rule.
func TestOldSnapshotsDoNotOutliveARevoke(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	admin, app := login(t, db, "admin", "tidemark_admin"), login(t, db, "app", "tidemark_emitter")
	for _, isolation := range []string{"repeatable read", "serializable"} {
		for i, c := range []struct{ before, change, code string }{
			{`select tidemark.domain_grant('%s', '` + app.name + `')`, `select tidemark.domain_revoke('%s', '` + app.name + `')`, "TM014"},
			{`select`, `select tidemark.domain_set('%s', '{"restricted": true}')`, "TM014"},
			{`select`, `select tidemark.domain_set('%s', '{"metadata_only": true}')`, "TM003"},
			{`select`, `select tidemark.type_set('%s', 'x', '{"schema": {"required": ["shop"]}}')`, "TM002"},
			// A grant that was taken back is none, and a lock no change.
			{`select tidemark.domain_grant('%s', '` + app.name + `')`, `begin; select tidemark.domain_revoke('%s', '` + app.name + `'); rollback`, ""},
			{`select tidemark.domain_grant('%s', '` + app.name + `')`, `select tidemark.domain_grant('third', '` + app.name + `')`, ""},
		} {
			domain := strings.ReplaceAll(isolation, " ", "_") + string(rune('a'+i))
			for _, d := range []string{domain, "another", "third"} {
				admin.exec(`select tidemark.type_set($1, 'x')`, d)
			}
			admin.exec(strings.ReplaceAll(c.before, "%s", domain))
			emits := []string{
				`select tidemark.emit('` + domain + `', 'x', '{"token": 1}')`, `select tidemark.emit('` + domain + `', 'x', '{"token": 1}', idempotency_key => 'k')`,
				`select * from tidemark.emit_many('[{"domain": "another", "type": "x"}, {"domain": "` + domain + `", "type": "x", "payload": {"token": 1}}]')`,
			}
			admin.exec(`select tidemark.type_set('another', 'x')`)
			app.exec(`begin isolation level ` + isolation)
			app.exec(`select count(*) from tidemark.emit_many('[]')`) // takes the snapshot
			app.exec(emits[0])
			admin.exec(strings.ReplaceAll(c.change, "%s", domain))
			for _, emit := range emits {
				app.exec(`savepoint s`)
				if err := app.session.try(emit); (err != nil) != (c.code != "") || err != nil && err.Code != "40001" {
					t.Errorf("%s, after %s: %s: %v", isolation, c.change, emit, err)
				}
				app.exec(`rollback to s`)
			}
			app.exec(`rollback; begin isolation level ` + isolation)
			for _, emit := range emits {
				app.exec(`savepoint s`)
				if err := app.session.try(emit); (err != nil) != (c.code != "") || err != nil && err.Code != c.code {
					t.Errorf("%s, begun after %s: %s: %v, want %q", isolation, c.change, emit, err, c.code)
				}
				app.exec(`rollback to s`)
			}
			app.rollback()
			admin.exec(`select tidemark.domain_set(d, '{"restricted": false, "metadata_only": false}') from unnest(array['another', $1]) d`, domain)
		}
	}
}
