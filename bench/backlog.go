package main

import (
	"context"
	"fmt"
)

// backlog is the committed outbox that the contestants of workload 1 read. No run changes it.
type backlog struct {
	*env
	seeded bool
}

// One event in so many is poison to the target that refuses some.
const poisonEvery = 10_000

// seed emits the events once: four types of one domain in strict alternation, which is the worst
// case for evidence stored as ranges.
func (b *backlog) seed(ctx context.Context) error {
	if b.seeded {
		return nil
	}
	const batch = 10_000
	for first := 1; first <= b.events; first += batch {
		last := min(first+batch-1, b.events)
		if err := b.expect(ctx, "events emitted", last-first+1, `
			select count(tidemark.emit('bench', 'type.' || n % 4, `+payload+` ||
			         case when n % $3 = 0 then '{"poison": true}' else '{}' end::jsonb, 'key.' || n % 1000))
			  from generate_series($1::int8, $2::int8) n`, first, last, poisonEvery); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		// Partitions are made as the log grows, as a scheduler would.
		if last%500_000 == 0 {
			if err := b.exec(ctx, "select tidemark.maintain()"); err != nil {
				return fmt.Errorf("seed: %w", err)
			}
		}
	}
	if err := b.expect(ctx, "events in the outbox", b.events, "select count(*) from tidemark.outbox"); err != nil {
		return err
	}
	b.seeded = true
	return b.vacuum(ctx, "tidemark.outbox")
}
