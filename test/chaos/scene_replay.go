package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// replayFails sends the events of a key again while their receiver refuses replays, and writes live events of that key
// meanwhile.
func replayFails(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	key, d := h.scratch(random), between(random, 2*time.Second, 5*time.Second)
	return "key " + key, h.scene(random, func(ctx context.Context, p *producer) error {
		one := func() {
			if p.conn != nil {
				t, cancel := p.begin(ctx)
				t.write(false, key)
				t.end(true)
				cancel()
			}
		}
		one()
		h.receivers[flaky].refuseReplays(d)
		if err := h.replayKey(ctx, flaky, key); err != nil {
			return err
		}
		for range 3 {
			if err := trial.Wait(ctx, d/4); err != nil {
				return err
			}
			one()
		}
		return nil
	})
}

// replayKey sends the events of a key again, and writes down which may come: the checker looks at that in the end.
func (h *harness) replayKey(ctx context.Context, route, key string) error {
	if err := h.command(ctx, `select count(*) from tidemark.route_replay($1, 'chaos', from_seq => 1, key => $2)`, route, key); err != nil {
		return err
	}
	events, _, err := ask(ctx, h, pgx.RowTo[string], `select event from app.journal where key = $1`, key)
	for _, e := range events {
		h.replays.Add(replay{Route: route, Event: e})
	}
	return err
}

// A probe is an executor of an operator that falls silent and comes back: the finding must open, and close.
type probe struct {
	Name           string
	Opened, Closed bool
}

// lowThresholds has everything late at once. The probe is silent for longer than its threshold in any case.
func lowThresholds(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, 2500*time.Millisecond, 4*time.Second)
	return "thresholds", func(ctx context.Context) error {
		x := probe{Name: "chaos/probe"}
		set := func(warn, bad string, cadence, threshold int) error {
			return h.command(ctx, `with late as (
					update tidemark.setting set value = case key when 'lag.warn' then $1 else $2 end where key in ('lag.warn', 'lag.bad'))
				update tidemark.heartbeat set expected_cadence_seconds = $3, stale_threshold_seconds = $4 where executor_id <> $5`,
				warn, bad, cadence, threshold, x.Name)
		}
		if err := set("1 millisecond", "1 second", 1, 1); err != nil {
			return err
		}
		if err := h.command(ctx, `select count(*) from tidemark.heartbeat_register($1, cadence => '1 second', threshold => '1 second', reason => 'chaos')`, x.Name); err != nil {
			return err
		}
		if err := h.command(ctx, `select tidemark.heartbeat_write($1)`, x.Name); err != nil {
			return err
		}
		if err := trial.Wait(ctx, d); err != nil {
			return err
		}
		open, err := h.looked(ctx, x.Name, true)
		if err != nil {
			return err
		}
		x.Opened = open
		if err := h.command(ctx, `select tidemark.heartbeat_register($1, cadence => '1 hour', threshold => '1 hour', reason => 'chaos')`, x.Name); err != nil {
			return err
		}
		if err := h.command(ctx, `select tidemark.heartbeat_write($1)`, x.Name); err != nil {
			return err
		}
		if err := set("1 minute", "15 minutes", 60, 300); err != nil {
			return err
		}
		open, err = h.looked(ctx, x.Name, false)
		x.Closed = !open
		h.probes.Add(x)
		return err
	}
}

// looked has the database look for what is late until the finding about an executor is open, or closed, as is wanted, for
// at most ten seconds: of two looks at once one passes over what the other is at. It reports whether the finding is open.
func (h *harness) looked(ctx context.Context, name string, want bool) (open bool, err error) {
	for deadline := time.Now().Add(10 * time.Second); ; {
		for _, sql := range []string{`select tidemark.lag_findings()`, `select count(*) from tidemark.stale_check()`} {
			if err := h.command(ctx, sql); err != nil {
				return false, err
			}
		}
		n, err := h.number(ctx, `select count(*) from tidemark.finding where kind = 'heartbeat_silent' and subject = $1 and closed_at is null`, name)
		if open = n > 0; err != nil || open == want || time.Now().After(deadline) {
			return open, err
		}
		if err := trial.Wait(ctx, 100*time.Millisecond); err != nil {
			return open, err
		}
	}
}
