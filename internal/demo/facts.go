package demo

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

func (s *show) gather(ctx context.Context) (*facts, error) {
	f := &facts{retried: map[string]int{}, cutOff: map[string]map[string]int{}}
	for _, part := range []func(context.Context, *facts) error{s.balance, s.tries, s.records} {
		if err := part(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// balance compares what was committed with what arrived.
func (s *show) balance(ctx context.Context, f *facts) error {
	rows, _ := s.conn.Query(ctx, `select event_id::text from demo.journal`)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	f.committed = make(map[string]bool, len(ids))
	for _, id := range ids {
		f.committed[id] = true
	}
	if s.function, err = s.functionJournal(ctx, s.conn); err != nil {
		return err
	}
	for _, t := range s.everywhere() {
		f.accounts = append(f.accounts, t.journal.balance(f.committed, s.acknowledged))
	}
	// What was rolled back has left its numbers unused. The poison, which was replayed, is no late commit.
	return s.conn.QueryRow(ctx, `
select (select last_value from tidemark.outbox_seq_seq) - (select count(*) from demo.journal), count(*) filter (where r.late)
from (select seq < max(seq) over (order by at rows between unbounded preceding and 1 preceding) as late
      from demo.received where unit_id <> 'unit-poison') r`).Scan(&f.rolledBack, &f.late)
}

// functionJournal is the journal of the SQL function: what it received, when that was committed.
func (s *show) functionJournal(ctx context.Context, db querier) (*journal, error) {
	rows, err := db.Query(ctx, `select event_id::text, unit_id, version, pg_xact_commit_timestamp(xmin) from demo.received order by at`)
	if err != nil {
		return nil, err
	}
	j := newJournal()
	var a trial.Arrival
	_, err = pgx.ForEachRow(rows, []any{&a.Event, &a.Key, &a.Version, &a.At}, func() error {
		j.add(a)
		return nil
	})
	return j, err
}

// tries asks the evidence which tries failed, and which may have arrived all the same.
func (s *show) tries(ctx context.Context, f *facts) error {
	rows, err := s.conn.Query(ctx, `
select route_code, event_id::text, count(*), count(*) filter (where detail like 'outcome unknown: %')
from tidemark.route_attempt where outcome = 'pending' and detail is not null group by route_code, event_id`)
	if err != nil {
		return err
	}
	var route, event string
	var tries, unknown int
	_, err = pgx.ForEachRow(rows, []any{&route, &event, &tries, &unknown}, func() error {
		f.retried[route] += tries
		if f.cutOff[route] == nil {
			f.cutOff[route] = map[string]int{}
		}
		f.cutOff[route][event] = unknown
		return nil
	})
	return err
}

func (s *show) records(ctx context.Context, f *facts) error {
	rows, _ := s.conn.Query(ctx, `select outcome::text, count(*) from tidemark.route_attempt group by outcome order by outcome`)
	var err error
	if f.evidence, err = pgx.CollectRows(rows, pgx.RowToStructByPos[evidence]); err != nil {
		return err
	}
	return s.conn.QueryRow(ctx, `
select (select count(*) from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id where r.route_code = $1),
       coalesce((select regexp_replace(d.detail, '^.*for a while: ', '') from tidemark.finding f join tidemark.finding_detail d on d.id = f.id
                 where f.kind = 'target_down' and f.subject = $1 and f.closed_at is null), '')`,
		routeDead).Scan(&f.dead.Waiting, &f.dead.Finding)
}
