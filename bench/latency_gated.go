package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// gatedStream is the outbox that careful people write by hand. Its reader stops before the oldest
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
	reader := gatedReader{notify: s.notify, handle: func(_ string, payload []byte) { handle(payload) }}
	if err := reader.connect(ctx, s.dsn); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- reader.consume(ctx) }()
	s.stop = func() error {
		cancel()
		defer reader.conn.Close(context.Background())
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	return nil
}

// gatedReader is the reader's side of it.
type gatedReader struct {
	notify bool
	handle func(key string, payload []byte)
	flush  func(context.Context) error // what was handled, before the cursor passes it; nil: it needs none
	conn   *pgx.Conn
	xid    int64
	seq    int64
}

func (r *gatedReader) connect(ctx context.Context, dsn string) (err error) {
	if r.conn, err = pgx.Connect(ctx, dsn); err != nil || !r.notify {
		return err
	}
	_, err = r.conn.Exec(ctx, "listen bench_gated")
	return err
}

func (r *gatedReader) consume(ctx context.Context) error {
	tick := time.NewTicker(gatedPoll)
	defer tick.Stop()
	for {
		n, err := r.page(ctx)
		switch {
		case err != nil:
			return errors.Join(err, ctx.Err())
		case n > 0 && r.notify:
			continue
		case r.notify:
			// Who waits behind a transaction that does not notify hears nothing when it ends.
			wait, cancel := context.WithTimeout(ctx, gatedPoll)
			_, err := r.conn.WaitForNotification(wait)
			cancel()
			if err != nil && (ctx.Err() != nil || r.conn.IsClosed()) {
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
func (r *gatedReader) page(ctx context.Context) (int, error) {
	rows, err := r.conn.Query(ctx, `
		select g.xid::text::int8, g.seq, g.key, g.payload from bench.gated_outbox g
		 where (g.xid, g.seq) > ($1::int8::text::xid8, $2::int8) and g.xid < pg_snapshot_xmin(pg_current_snapshot())
		 order by g.xid, g.seq limit 5000`, r.xid, r.seq)
	if err != nil {
		return 0, err
	}
	var key string
	var payload []byte
	tag, err := pgx.ForEachRow(rows, []any{&r.xid, &r.seq, &key, &payload}, func() error {
		r.handle(key, payload)
		return nil
	})
	if err != nil || tag.RowsAffected() == 0 {
		return 0, err
	}
	if r.flush != nil {
		if err := r.flush(ctx); err != nil {
			return 0, err
		}
	}
	_, err = r.conn.Exec(ctx, "update bench.cursor set seq = $1 where name = 'gated'", r.seq)
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
