package testserver

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Login makes a login that is a member of a role, and returns a pool of its sessions in the database of the address, which is a
// superuser's. Both are gone when the test ends.
func Login(t testing.TB, address, name, memberOf string) *pgxpool.Pool {
	t.Helper()
	asSuperuser := func(sql string) {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			_, err = conn.Exec(ctx, sql)
			_ = conn.Close(ctx) // the statement has its own error
		}
		if err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	login := pgx.Identifier{name}.Sanitize()
	asSuperuser("create role " + login + " login in role " + pgx.Identifier{memberOf}.Sanitize())
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(name)
	pool, err := pgxpool.New(t.Context(), at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		asSuperuser("drop owned by " + login + "; drop role " + login)
	})
	return pool
}
