package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A4: Run refuses a schema that the daemon refuses, before it registers anything, and none other.
func TestRunChecksTheSchema(t *testing.T) {
	t.Parallel()
	const newer = `insert into tidemark.migration (version, name, breaking, checksum) values (9999, 'of_later', %t, 'x')`
	for name, c := range map[string]struct {
		sql  string
		want string
	}{
		"as built":           {`select`, ""},
		"newer":              {fmt.Sprintf(newer, false), ""},
		"newer and breaking": {fmt.Sprintf(newer, true), "migration 9999_of_later needs a newer version of the module"},
		"older":              {fmt.Sprintf(`delete from tidemark.migration where version >= %d`, store.Migrations), "run: tidemark migrate up"},
		"nothing":            {`drop schema tidemark cascade`, "nothing is installed; run: tidemark migrate up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			if _, err := db.Pool.Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			client, err := consumer.New(db.Pool, consumer.Config{Worker: "billing"})
			if err != nil {
				t.Fatal(err)
			}
			client.Handle("shop/*", func(context.Context, pgx.Tx, tidemark.Event) error { return nil })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- client.Run(ctx) }()
			conn := db.Connect(t)
			checked := migrate.Check(t.Context(), conn)
			if c.want == "" {
				program{t: t, db: db}.eventually(`select worker from tidemark.worker where worker = 'billing'`, "billing")
				cancel()
				if err := <-done; err != nil || checked != nil {
					t.Errorf("Run: %v; migrate.Check: %v", err, checked)
				}
				return
			}
			err = <-done
			if !errors.Is(err, tidemark.ErrSchema) || !strings.Contains(err.Error(), c.want) || checked == nil {
				t.Errorf("Run: %v; migrate.Check: %v", err, checked)
			}
			if name == "nothing" {
				return
			}
			var n int
			if err := conn.QueryRow(t.Context(), `select count(*) from tidemark.worker where worker = 'billing'`).Scan(&n); err != nil || n != 0 {
				t.Errorf("%d workers were registered, %v", n, err)
			}
		})
	}
}
