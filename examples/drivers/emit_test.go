// Package drivers shows how to emit an event in a transaction of pgx, database/sql, sqlx, bun, GORM and ent. It is a module of
// its own, so that Tidemark does not depend on them.
package drivers

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Each function writes an order and emits its event in one transaction.

func withPgx(ctx context.Context, db *pgx.Conn, e tidemark.Event) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into orders (id) values ($1)`, e.Key); err != nil {
			return err
		}
		_, err := tidemark.Emit(ctx, tx, e)
		return err
	})
}

func withDatabaseSQL(ctx context.Context, db *sql.DB, e tidemark.Event) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `insert into orders (id) values ($1)`, e.Key); err != nil {
		return err
	}
	if _, err := tidemark.EmitSQL(ctx, tx, e); err != nil {
		return err
	}
	return tx.Commit()
}

func withSQLX(ctx context.Context, db *sqlx.DB, e tidemark.Event) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.NamedExecContext(ctx, `insert into orders (id) values (:id)`, order{ID: e.Key}); err != nil {
		return err
	}
	if _, err := tidemark.EmitSQL(ctx, tx, e); err != nil {
		return err
	}
	return tx.Commit()
}

// A bun.Tx puts its arguments into the text of a query by itself; the *sql.Tx in it passes them on.
func withBun(ctx context.Context, db *bun.DB, e tidemark.Event) error {
	return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(&order{ID: e.Key}).Exec(ctx); err != nil {
			return err
		}
		_, err := tidemark.EmitSQL(ctx, tx.Tx, e)
		return err
	})
}

func withGORM(ctx context.Context, db *gorm.DB, e tidemark.Event) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&order{ID: e.Key}).Error; err != nil {
			return err
		}
		_, err := tidemark.EmitSQL(ctx, tx.Statement.ConnPool, e)
		return err
	})
}

// The client that ent generates with --feature sql/execquery has a Tx with this method, too.
func withEnt(ctx context.Context, db *entsql.Driver, e tidemark.Event) error {
	begun, err := db.Tx(ctx)
	if err != nil {
		return err
	}
	tx := begun.(*entsql.Tx)
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `insert into orders (id) values ($1)`, e.Key); err != nil {
		return err
	}
	if _, err := tidemark.EmitSQL(ctx, tx, e); err != nil {
		return err
	}
	return tx.Commit()
}

type order struct {
	bun.BaseModel `bun:"table:orders" gorm:"-"`
	ID            string `bun:"id,pk" gorm:"primaryKey" db:"id"`
}

func TestMain(m *testing.M) { tidemarktest.Main(m) }

// An event commits with its order. A refused one takes the order with it, and says why, with each driver.
func TestEmit(t *testing.T) {
	t.Parallel()
	type emit = func(context.Context, tidemark.Event) error
	open := func(t *testing.T, driver, url string) *sql.DB {
		db, err := sql.Open(driver, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	for name, with := range map[string]func(*testing.T, *tidemarktest.DB) emit{
		"pgx": func(t *testing.T, db *tidemarktest.DB) emit {
			conn := db.Connect(t)
			return func(ctx context.Context, e tidemark.Event) error { return withPgx(ctx, conn, e) }
		},
		"database/sql with pgx": func(t *testing.T, db *tidemarktest.DB) emit {
			conn := open(t, "pgx", db.URL)
			return func(ctx context.Context, e tidemark.Event) error { return withDatabaseSQL(ctx, conn, e) }
		},
		"database/sql with lib/pq": func(t *testing.T, db *tidemarktest.DB) emit {
			conn := open(t, "postgres", db.URL)
			return func(ctx context.Context, e tidemark.Event) error { return withDatabaseSQL(ctx, conn, e) }
		},
		"sqlx with lib/pq": func(t *testing.T, db *tidemarktest.DB) emit {
			conn := sqlx.NewDb(open(t, "postgres", db.URL), "postgres")
			return func(ctx context.Context, e tidemark.Event) error { return withSQLX(ctx, conn, e) }
		},
		"bun": func(t *testing.T, db *tidemarktest.DB) emit {
			conn := bun.NewDB(open(t, "pgx", db.URL), pgdialect.New())
			return func(ctx context.Context, e tidemark.Event) error { return withBun(ctx, conn, e) }
		},
		"GORM": func(t *testing.T, db *tidemarktest.DB) emit {
			conn, err := gorm.Open(postgres.New(postgres.Config{Conn: open(t, "pgx", db.URL)}))
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context, e tidemark.Event) error { return withGORM(ctx, conn, e) }
		},
		"GORM with prepared statements": func(t *testing.T, db *tidemarktest.DB) emit {
			conn, err := gorm.Open(postgres.New(postgres.Config{Conn: open(t, "pgx", db.URL)}), &gorm.Config{PrepareStmt: true})
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context, e tidemark.Event) error { return withGORM(ctx, conn, e) }
		},
		"ent": func(t *testing.T, db *tidemarktest.DB) emit {
			conn := entsql.OpenDB(dialect.Postgres, open(t, "pgx", db.URL))
			return func(ctx context.Context, e tidemark.Event) error { return withEnt(ctx, conn, e) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			for _, statement := range []string{
				`create table orders (id text primary key)`,
				`select tidemark.type_set('shop', 'order.created', '{"schema": {"type": "object", "required": ["cents"]}}')`,
			} {
				if _, err := db.Pool.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			emit := with(t, db)
			event := tidemark.Event{Domain: "shop", Type: "order.created", Key: "7", Payload: []byte(`{"cents": 1200}`)}
			if err := emit(t.Context(), event); err != nil {
				t.Fatal(err)
			}

			typo := event
			typo.Key, typo.Type = "8", "order.craeted"
			var refused *tidemark.Error
			err := emit(t.Context(), typo)
			if !errors.Is(err, tidemark.ErrUnknownType) || !errors.As(err, &refused) || refused.Hint == "" {
				t.Errorf("got %#v", err)
			} else if want := "TM001: event type shop/order.craeted is not registered or not enabled"; err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
			empty := event
			empty.Key, empty.Payload = "9", []byte(`{}`)
			if err := emit(t.Context(), empty); !errors.Is(err, tidemark.ErrPayload) {
				t.Errorf("got %v", err)
			}

			var got string
			if err := db.Pool.QueryRow(t.Context(), `select (select string_agg(id, ' ') from orders) || ', ' ||
				(select string_agg(concat_ws(' ', type, key, payload), ' ') from tidemark.outbox)`).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if want := `7, order.created 7 {"cents": 1200}`; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
