// Package exampledb opens databases for the examples of the library.
package exampledb

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Open opens a database with the tables of a shop, for one example.
func Open() (pool *pgxpool.Pool, closePool func()) {
	t := &exampleTB{}
	db := tidemarktest.NewDB(t)
	t.exec(db.Pool, `select tidemark.type_set('shop', 'order.created')`)
	t.exec(db.Pool, `create table orders (id text primary key, cents bigint not null)`)
	t.exec(db.Pool, `create table entry (order_id text primary key, cents bigint not null)`)
	return db.Pool, t.end
}

func OpenSQL() (db *sql.DB, closeDB func()) {
	pool, closePool := Open()
	db = stdlib.OpenDBFromPool(pool)
	return db, func() {
		_ = db.Close()
		closePool()
	}
}

// SwitchOn does what an operator does who lets the route of the handler go live.
func SwitchOn(pool *pgxpool.Pool, worker string) {
	t := &exampleTB{}
	t.exec(pool, `select tidemark.handlers_register($1, '{shop/order.created}', 'start')`, worker)
	t.exec(pool, `select tidemark.route_go_live($1 || '.shop.order.created', 'example')`, worker)
}

// OrderSource does what an operator does who makes the orders a source, and opens the gates of the worker that
// takes their rows.
func OrderSource(pool *pgxpool.Pool, worker string) {
	t := &exampleTB{}
	t.exec(pool, `alter table orders add at timestamptz not null default now()`)
	t.exec(pool, `insert into orders (id, cents, at) values ('7', 1200, now() - interval '1 minute'), ('8', 300, now() - interval '1 minute')`)
	t.exec(pool, `select tidemark.source_set('orders', '{"table": "public.orders", "id_column": "id", "timestamp_column": "at", "safety": "clock"}')`)
	t.exec(pool, `select tidemark.rows_register($1 || '.rows')`, worker)
	t.exec(pool, `select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.' || $1 || '.rows.enabled', true)`, worker)
}

// exampleTB is as much of a test as an example needs. What goes wrong is a panic.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (t *exampleTB) Helper()                           {}
func (t *exampleTB) Context() context.Context          { return context.Background() }
func (t *exampleTB) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *exampleTB) Failed() bool                      { return false }
func (t *exampleTB) Error(args ...any)                 { panic(fmt.Sprint(args...)) }
func (t *exampleTB) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (t *exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleTB) exec(pool *pgxpool.Pool, sql string, args ...any) {
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (t *exampleTB) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}
