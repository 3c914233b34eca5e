package main

import (
	"context"
	"fmt"
	"strings"
)

// backlog is the committed outbox that contestants read. No run changes it.
type backlog struct {
	*env
	events int
	types  int
}

// One event in so many is poison to the target that refuses some.
const poisonEvery = 10_000

// seed emits the events, unless they are there: types of one domain in strict alternation, which
// is the worst case for evidence stored as ranges.
func (b *backlog) seed(ctx context.Context, events, types int) error {
	if b.events == events && b.types == types {
		return nil
	}
	b.events, b.types = 0, 0
	if err := b.emptyLog(ctx); err != nil {
		return err
	}
	const batch = 10_000
	for first := 1; first <= events; first += batch {
		last := min(first+batch-1, events)
		if err := b.expect(ctx, "events emitted", last-first+1, `
			select count(tidemark.emit('bench', 'type.' || n % $4, `+payload+` ||
			         case when n % $3 = 0 then '{"poison": true}' else '{}' end::jsonb, 'key.' || n % 1000))
			  from generate_series($1::int8, $2::int8) n`, first, last, poisonEvery, types); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		// Partitions are made as the log grows, as a scheduler would.
		if last%500_000 == 0 {
			if err := b.exec(ctx, "select tidemark.maintain()"); err != nil {
				return fmt.Errorf("seed: %w", err)
			}
		}
	}
	if err := b.expect(ctx, "events in the outbox", events, "select count(*) from tidemark.outbox"); err != nil {
		return err
	}
	b.events, b.types = events, types
	return b.vacuum(ctx, "tidemark.outbox")
}

// emptyLog starts the log anew. It defends itself against that, except in the role of a replica.
func (e *env) emptyLog(ctx context.Context) error {
	return e.exec(ctx, `
		set session_replication_role = replica;
		truncate tidemark.outbox restart identity;
		reset session_replication_role`)
}

// resetWorker brings worker bench to the state of a new one: no routes, no evidence, its cursor at
// the start of the log.
func (e *env) resetWorker(ctx context.Context) error {
	if err := e.exec(ctx, `
		set session_replication_role = replica;
		truncate tidemark.decision, tidemark.attempt, tidemark.pending, tidemark.pending_row, tidemark.dead_letter,
			tidemark.finding, tidemark.finding_message;
		delete from tidemark.outbound_route;
		reset session_replication_role`); err != nil {
		return err
	}
	return e.resetCursor(ctx, "bench")
}

func (e *env) resetCursor(ctx context.Context, worker string) error {
	return e.exec(ctx, strings.ReplaceAll(`
		delete from tidemark.worker_cursor where worker = '$worker';
		insert into tidemark.worker_cursor (worker, source) values ('$worker', 'outbox');
		update tidemark.heartbeat set lease_until = null, lease_owner = null where executor_id = '$worker/outbox/0'`, "$worker", worker))
}
