package testserver

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Deaf returns a pool like the given one whose connections LoseAnswers.
func Deaf(t *testing.T, like *pgxpool.Pool) (pool *pgxpool.Pool, lose *atomic.Bool) {
	t.Helper()
	config := like.Config()
	lose = LoseAnswers(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, lose
}

// LoseAnswers changes what connections of a pool hear: each time that lose is set, the one that commits next loses the answer, once
// the server has committed.
func LoseAnswers(config *pgxpool.Config) (lose *atomic.Bool) {
	lose = new(atomic.Bool)
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &deaf{Conn: conn, lose: lose}, err
	}
	return lose
}

type deaf struct {
	net.Conn

	lose    *atomic.Bool
	commits atomic.Bool
}

func (d *deaf) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "commit\x00") && d.lose.CompareAndSwap(true, false) {
		d.commits.Store(true)
	}
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.commits.Load() && err == nil {
		return 0, io.ErrUnexpectedEOF // the server has answered: it is committed
	}
	return n, err
}
