package store_test

import (
	"context"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Of many claims the newest, those of a key or an event id, and those that have failed or wait are found without reading all.
func TestOldClaimsAreNotRead(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	t.Cleanup(func() {
		if _, err := test.Pool.Exec(context.Background(), `drop owned by tidemark_service_claims; drop role tidemark_service_claims`); err != nil {
			t.Error(err)
		}
	})
	conn := test.Connect(t)
	for _, sql := range []string{
		`create role tidemark_service_claims`,
		`select tidemark.service_set('claims')`,
		`insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, producer, via, error_code, processed_at, expires_at)
			select 'claims', 'k' || i, '', case i when 7 then 'failed_terminal' when 8 then 'failed_retryable' else 'processed' end, gen_random_uuid(), 'make', 1, 'shop', 'acl',
				case i when 7 then 'sql.data' end, now() - i * interval '1 second', now() from generate_series(1, 50000) i`,
		`insert into tidemark.command_parked (service, idempotency_key, key, call, next_attempt_at) values ('claims', 'k8', 'k8', '{}', now())`,
		`vacuum analyze tidemark.command_claim, tidemark.command_parked`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	scans := func() (n int64) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), `select pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), `select seq_scan from pg_stat_user_tables where relid = 'tidemark.command_claim'::regclass`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var eventID string
	if err := conn.QueryRow(t.Context(), `select event_id from tidemark.command_claim where idempotency_key = 'k10'`).Scan(&eventID); err != nil {
		t.Fatal(err)
	}
	db := store.New(conn)
	for name, ask := range map[string]func() ([]store.CommandClaim, error){
		"k1": func() ([]store.CommandClaim, error) {
			return db.CommandClaims(t.Context(), store.ClaimFilter{Limit: 20})
		},
		"k7": func() ([]store.CommandClaim, error) {
			return db.CommandClaims(t.Context(), store.ClaimFilter{Service: "claims", State: "failed_terminal", Limit: 20})
		},
		"k8": func() ([]store.CommandClaim, error) {
			return db.CommandClaims(t.Context(), store.ClaimFilter{State: "failed_retryable", Limit: 20})
		},
		"k31": func() ([]store.CommandClaim, error) {
			all, err := db.CommandClaims(t.Context(), store.ClaimFilter{Service: "claims", Limit: 30})
			if err != nil {
				return nil, err
			}
			after := all[len(all)-1].Place()
			return db.CommandClaims(t.Context(), store.ClaimFilter{Service: "claims", Limit: 20, After: &after})
		},
		"k9":  func() ([]store.CommandClaim, error) { return db.CommandClaimsOf(t.Context(), "k9") },
		"k10": func() ([]store.CommandClaim, error) { return db.CommandClaimsOf(t.Context(), eventID) },
	} {
		before := scans()
		all, err := ask()
		if err != nil || len(all) == 0 || all[0].IdempotencyKey != name {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
		if after := scans(); after != before {
			t.Errorf("%s: all claims are read", name)
		}
	}
}

// Commands that wait behind others are not read each time that one of them has its turn.
func TestCommandsBehindAreNotRead(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	t.Cleanup(func() {
		if _, err := test.Pool.Exec(context.Background(), `drop owned by tidemark_service_behind; drop role tidemark_service_behind`); err != nil {
			t.Error(err)
		}
	})
	conn := test.Connect(t)
	for _, sql := range []string{
		`create schema app; create function app.make(payload jsonb) returns void language sql as 'select'`,
		`select tidemark.service_set('behind'), tidemark.stage_set('live', 'test'), tidemark.gate_set('commands.enabled', true)`,
		`select tidemark.gate_set('commands.behind.enabled', true), tidemark.command_set('behind', 'make', 1, '{"function": "app.make"}'), tidemark.command_allow('behind', 'shop'),
			tidemark.route_set('r', '{"domain": "commands", "type": "result.behind", "target_kind": "notify", "target_ref": "r", "enabled": true, "dry_run": false}')`,
		`select tidemark.command_set('behind', 'make', 1, '{"enabled": true, "dry_run": false}')`,
		`insert into tidemark.command_claim (service, idempotency_key, fingerprint, state, event_id, command, version, producer, via, processed_at, expires_at)
			select 'behind', 'k' || i, '', 'failed_retryable', gen_random_uuid(), 'make', 1, 'shop', 'acl', now(), now() + interval '1 day' from generate_series(1, 20000) i`,
		`insert into tidemark.command_parked (service, idempotency_key, key, call, next_attempt_at)
			select m.service, m.idempotency_key, 'key', jsonb_build_object('event_id', m.event_id, 'service', 'behind', 'command', 'make', 'command_version', 1, 'schema_version', 1,
				'payload', '{}'::jsonb, 'idempotency_key', m.idempotency_key, 'key', 'key', 'occurred_at', '2026-01-31T12:00:00Z', 'trace_id', '0af7651916cd43dd8448eb211c80319c',
				'producer', 'shop', 'via', 'acl'), case when m.idempotency_key = 'k1' then now() else 'infinity' end
			from tidemark.command_claim m order by length(m.idempotency_key), m.idempotency_key`,
		`analyze tidemark.command_claim, tidemark.command_parked`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	read := func() (n int64) { // rows, by scans of the table and of its indexes
		t.Helper()
		if _, err := conn.Exec(t.Context(), `select pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), `select (select t.seq_tup_read from pg_stat_user_tables t where t.relid = 'tidemark.command_parked'::regclass)
			+ (select sum(i.idx_tup_read) from pg_stat_user_indexes i where i.relid = 'tidemark.command_parked'::regclass)`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const turns = 5
	before := read()
	for range turns {
		r, err := store.New(conn).CommandRetry(t.Context(), 1)
		if err != nil || len(r) != 1 || r[0].Status != "processed" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if n := read() - before; n > turns*100 {
		t.Errorf("%d turns have read %d rows", turns, n)
	}
}
