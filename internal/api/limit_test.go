package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// busy is a pool that has no connection left.
type busy struct {
	Pool

	until time.Time
}

func (b *busy) BeginTx(ctx context.Context, _ pgx.TxOptions) (pgx.Tx, error) {
	b.until, _ = ctx.Deadline()
	return nil, errors.New("busy")
}

// No request waits for a connection, or holds one, without end.
func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	pool := &busy{}
	r := httptest.NewRequestWithContext(WithPerson(t.Context(), vera), "GET", "/api/v1/outlook", nil)
	New(Options{Pool: pool, Log: slog.New(slog.DiscardHandler)}).ServeHTTP(httptest.NewRecorder(), r)
	if left := time.Until(pool.until); left <= 0 || left > requestLimit {
		t.Errorf("the request ends in %s", left)
	}
}
