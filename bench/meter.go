package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A meter reads the clocks that a run is measured with, over a connection of its own.
type meter struct {
	conn *pgx.Conn
	cpu  cpuClock
}

type reading struct {
	at  time.Time
	cpu time.Duration // of the whole cluster, this process and its ended children
	wal int64
}

func newMeter(ctx context.Context, dsn string) (*meter, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return &meter{conn: conn, cpu: newCPUClock(int(conn.PgConn().PID()))}, nil
}

// begin reads the wall clock last, end reads it first: reading the others is not part of the run.
func (m *meter) begin(ctx context.Context) (r reading, err error) {
	if r.wal, err = walPosition(ctx, m.conn); err != nil {
		return r, err
	}
	r.cpu = m.cpu.total()
	r.at = time.Now()
	return r, nil
}

func (m *meter) end(ctx context.Context) (r reading, err error) {
	r.at = time.Now()
	r.cpu = m.cpu.total()
	r.wal, err = walPosition(ctx, m.conn)
	return r, err
}

func (m *meter) close(ctx context.Context) { _ = m.conn.Close(ctx) }
