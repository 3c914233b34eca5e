package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// gatedStream is the outbox that careful people write by hand: its reader stops before the oldest
// transaction that is still under way, so that it never passes an event. It polls, or is woken by a
// notification in the writer's transaction.
type gatedStream struct {
	*env
	notify bool
	stop   func() error
}

const gatedPoll = 100 * time.Millisecond

func (s *gatedStream) Prepare(ctx context.Context) error {
	if err := s.exec(ctx, `
		truncate bench.gated_outbox restart identity;
		delete from bench.cursor where name = 'gated';
		insert into bench.cursor (name) values ('gated')`); err != nil {
		return err
	}
	return s.vacuum(ctx, "bench.gated_outbox", "bench.cursor")
}

func (s *gatedStream) Emit(ctx context.Context, db querier, _ int, key, payload string) error {
	query := "insert into bench.gated_outbox (key, payload) values ($2, $1)"
	if s.notify {
		query = "with e as (insert into bench.gated_outbox (key, payload) values ($2, $1)) select pg_notify('bench_gated', '')"
	}
	_, err := db.Exec(ctx, query, payload, key)
	return err
}

func (s *gatedStream) Start(ctx context.Context, handle func([]byte)) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	if s.notify {
		if _, err := conn.Exec(ctx, "listen bench_gated"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.consume(ctx, conn, handle) }()
	s.stop = func() error {
		cancel()
		defer conn.Close(context.Background())
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	return nil
}

func (s *gatedStream) consume(ctx context.Context, conn *pgx.Conn, handle func([]byte)) error {
	var xid, seq int64
	tick := time.NewTicker(gatedPoll)
	defer tick.Stop()
	for {
		n, err := s.page(ctx, conn, &xid, &seq, handle)
		switch {
		case err != nil:
			return errors.Join(err, ctx.Err())
		case n > 0 && s.notify:
			continue
		case s.notify:
			// Who waits behind a transaction that does not notify hears nothing when it ends.
			wait, cancel := context.WithTimeout(ctx, gatedPoll)
			_, err := conn.WaitForNotification(wait)
			cancel()
			if err != nil && (ctx.Err() != nil || conn.IsClosed()) {
				return errors.Join(err, ctx.Err())
			}
		default:
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// page handles what is there, and makes the cursor durable.
func (s *gatedStream) page(ctx context.Context, conn *pgx.Conn, xid, seq *int64, handle func([]byte)) (int, error) {
	rows, err := conn.Query(ctx, `
		select xid::text::int8, seq, payload from bench.gated_outbox
		 where (xid, seq) > ($1::int8::text::xid8, $2::int8) and xid < pg_snapshot_xmin(pg_current_snapshot())
		 order by xid, seq limit 5000`, *xid, *seq)
	if err != nil {
		return 0, err
	}
	var payload []byte
	tag, err := pgx.ForEachRow(rows, []any{xid, seq, &payload}, func() error {
		handle(payload)
		return nil
	})
	if err != nil || tag.RowsAffected() == 0 {
		return 0, err
	}
	_, err = conn.Exec(ctx, "update bench.cursor set seq = $1 where name = 'gated'", *seq)
	return int(tag.RowsAffected()), err
}

func (s *gatedStream) Stop(ctx context.Context) error {
	if s.stop == nil {
		return nil
	}
	err := s.stop()
	s.stop = nil
	return errors.Join(err, s.exec(ctx, "truncate bench.gated_outbox"))
}

func (s *gatedStream) Verify(context.Context) error { return nil }
