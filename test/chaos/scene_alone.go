package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// alone is what scenes are at work on that stop the other producers: one of them at a time.
const alone = "the producers"

// alone gives a writer of its own to do while the producers begin nothing and one other writes in short transactions.
func (h *harness) alone(random *rand.Rand, do func(ctx context.Context, p *producer) error) func(context.Context) error {
	return h.scene(random, func(ctx context.Context, p *producer) error {
		h.still.Store(true)
		defer h.still.Store(false)
		for deadline := time.Now().Add(10 * time.Second); ; {
			n, err := h.number(ctx, `select (select count(*) from pg_stat_activity where usename = 'chaos_writer' and xact_start is not null)
				+ (select count(*) from pg_prepared_xacts)`)
			if err != nil || n > 0 && time.Now().After(deadline) {
				return err
			}
			if n == 0 {
				break
			}
			if err := trial.Wait(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
		others, enough := context.WithCancel(ctx)
		var writing sync.WaitGroup
		defer writing.Wait()
		defer enough()
		seed := random.Uint64()
		writing.Go(func() {
			conn, err := connect(others, h.writerURL())
			if err != nil {
				return
			}
			other := &producer{harness: h, random: rand.New(rand.NewPCG(seed, 1)), conn: conn}
			defer other.hangUp()
			for other.conn != nil && trial.Wait(others, 20*time.Millisecond) == nil {
				d, cancel := other.begin(ctx)
				d.write(false, h.scratch(other.random))
				d.end(true)
				cancel()
			}
		})
		return do(ctx, p)
	})
}

// lateAlone keeps one event uncommitted until the cursor waits for its writer, while all others write in short transactions: no
// other writer keeps the fence open that is to know this one. Among the producers' long transactions a fence that misses a
// writer closes so late that the writer has ended.
func lateAlone(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	return alone, h.alone(random, func(ctx context.Context, p *producer) error {
		for range 3 {
			if p.conn == nil {
				return nil
			}
			d, cancel := p.begin(ctx)
			d.write(false, h.scratch(p.random))
			err := h.awaitFence(d)
			d.end(true)
			cancel()
			if err != nil {
				return err
			}
			if err := trial.Wait(ctx, between(p.random, 0, time.Second)); err != nil {
				return err
			}
		}
		return nil
	})
}
