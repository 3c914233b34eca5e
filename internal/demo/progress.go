package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// note prints what happens under load, and when.
func (s *show) note(format string, args ...any) {
	s.say("%7.1f s  %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// patience is how long there may be no progress after the application is done.
const patience = 20 * time.Second

// progress prints the counts of each target from time to time. It returns when every committed event has arrived.
func (s *show) progress(ctx context.Context, written <-chan struct{}) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	s.say("%9s %10s %9s %9s %9s %9s %9s %18s", "", "committed", "function", "webhook", "unordered", "NATS", "Kafka", "waiting, dead one")
	say := time.NewTicker(s.options.Load / 6)
	defer say.Stop()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	var before int
	var moved time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-say.C:
			now, err := s.count(ctx, conn)
			if err != nil {
				return err
			}
			s.say("%s", now)
		case <-written:
			s.receiver.faulty.Store(false)
			s.note("the application is done")
			written, moved = nil, time.Now()
		case <-poll.C:
			if written != nil {
				continue
			}
			now, err := s.count(ctx, conn)
			if err != nil {
				return err
			}
			if now.all() {
				s.say("%s", now)
				return nil
			}
			if sum := now.sum(); sum != before {
				before, moved = sum, time.Now()
			}
			if time.Since(moved) > patience {
				s.note("not everything has arrived, and nothing arrives any more")
				return nil
			}
		}
	}
}

// standing counts what was committed and what has arrived.
type standing struct {
	after     time.Duration
	committed int
	function  int
	arrived   []int // at each target
	waiting   int   // for the dead target
	due       int   // pending for others
	ahead     int   // numbers that the worker has not read yet
}

func (s *show) count(ctx context.Context, conn *pgx.Conn) (now standing, err error) {
	now.after = time.Since(s.began)
	err = conn.QueryRow(ctx, `
select (select count(*) from demo.journal), (select count(*) from demo.received),
       count(*) filter (where r.route_code = $1), count(*) filter (where r.route_code <> $1),
       (select h.behind + h.holes from tidemark.worker_health h where h.worker = $2)
from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id`, routeDead, worker).
		Scan(&now.committed, &now.function, &now.waiting, &now.due, &now.ahead)
	for _, t := range s.targets() {
		now.arrived = append(now.arrived, t.journal.events())
	}
	return now, err
}

// all reports whether every committed event has arrived. Two exceptions: the dead target gets none, and the function refuses
// the poison event.
func (n standing) all() bool {
	for _, arrived := range n.arrived {
		if arrived != n.committed {
			return false
		}
	}
	return n.due == 0 && n.ahead == 0 && n.function == n.committed-1 && n.waiting == n.committed
}

func (n standing) sum() int {
	sum := n.function + n.waiting - n.ahead
	for _, arrived := range n.arrived {
		sum += arrived
	}
	return sum
}

func (n standing) String() string {
	line := fmt.Sprintf("%7.1f s %10d %9d", n.after.Seconds(), n.committed, n.function)
	for _, arrived := range n.arrived {
		line += fmt.Sprintf(" %9d", arrived)
	}
	return line + fmt.Sprintf(" %18d", n.waiting)
}
