package store_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What one login or person changed is found without a look at what all others did, however often others are asked for.
func TestAuditOfOneReadsTheirsAlone(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	for _, sql := range []string{
		`set session_replication_role = replica; insert into tidemark.audit (action, object, actor, person, reason)
			select 'test', 'outbound_route ' || n, case when n % 5000 = 0 then 'ann' else 'deploy' end, case when n % 5000 = 1 then 'ann' when n % 2 = 0 then 'bob' end, 'why'
			from generate_series(1, 20000) n; reset session_replication_role`,
		`analyze tidemark.audit`,
	} {
		if _, err := test.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	config, err := pgx.ParseConfig(test.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // as the console's: no plan is kept for all names
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func() (entries int) {
		err := tx.QueryRow(t.Context(), `select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relid = 'tidemark.audit'::regclass`).Scan(&entries)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	for _, who := range []string{"bob", "bob", "bob", "bob", "bob", "bob", "bob", "ann", "no one"} {
		want, before := map[string]int{"ann": 8, "bob": 50}[who], read()
		got, err := store.New(tx).Audit(t.Context(), store.AuditFilter{Who: who, Object: "outbound_route", Limit: 50})
		if err != nil || len(got) != want {
			t.Errorf("%d entries of %s, want %d: %v", len(got), who, want, err)
		}
		for i := 1; i < len(got); i++ {
			if got[i].ID >= got[i-1].ID {
				t.Errorf("%s: %d comes after %d", who, got[i].ID, got[i-1].ID)
			}
		}
		if n := read() - before; n > 3*want+10 {
			t.Errorf("%s: %d entries were read for %d", who, n, want)
		}
	}
}
