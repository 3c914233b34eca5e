package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// calmDown writes events while nothing is wrong but the dead target; and again while a receiver refuses every replay of
// the first ones.
func (h *harness) calmDown(ctx context.Context) ([]calm, error) {
	h.receivers[flaky].feel(mood{})
	first, err := h.writeCalm(ctx, 500, "a dead target on another route")
	if err != nil {
		return nil, err
	}

	const again = 100 // of the same keys as the events of the second time
	h.receivers[flaky].refuseReplays(time.Minute)
	// Not from the end of the log on: a crash skips numbers.
	span, _, err := ask(ctx, h, pgx.RowToStructByPos[struct{ First, Last int64 }], `select min(o.seq), max(o.seq)
		from app.journal j join tidemark.outbox o on o.event_id = j.event::uuid where j.id = any ($1)`, first.IDs[:again])
	if err != nil {
		return nil, err
	}
	// That they came is one thing, that it is recorded another: what is pending is left out.
	for deadline := time.Now().Add(20 * time.Second); ; {
		n, err := h.number(ctx, `select events from tidemark.route_replay($1, from_seq => $2, to_seq => $3, dry_run => true)
			where former is null`, flaky, span[0].First, span[0].Last)
		if err != nil {
			return nil, err
		}
		if n >= again || time.Now().After(deadline) {
			break
		}
		if err := trial.Wait(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if err := h.command(ctx, `select count(*) from tidemark.route_replay($1, 'chaos', from_seq => $2, to_seq => $3)`, flaky, span[0].First, span[0].Last); err != nil {
		return nil, err
	}
	events, _, err := ask(ctx, h, pgx.RowTo[string], `select event from app.journal where id = any ($1)`, first.IDs[:again])
	for _, e := range events {
		h.replays.Add(replay{Route: flaky, Event: e, Known: true})
	}
	if err != nil {
		return nil, err
	}
	if err := h.awaitReplays(ctx, `state <> 'finished' and staged > 0`); err != nil {
		return nil, err
	}
	// What has to be tried again must not wait for the replays either.
	h.receivers[flaky].feel(mood{fail: 0.05})
	second, err := h.writeCalm(ctx, 2*again, "replays that fail, and a dead target on another route")
	if err != nil {
		return nil, err
	}
	h.receivers[flaky].refuseReplays(0)
	h.receivers[flaky].feel(mood{})
	return []calm{first, second}, h.awaitReplays(ctx, `not exists (select from tidemark.replay_summary where state <> 'finished')`)
}

// awaitReplays returns when a condition holds for the replays on routes, or after a while: the checker tells what did not come.
func (h *harness) awaitReplays(ctx context.Context, condition string) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		n, err := h.number(ctx, `select count(*) from tidemark.replay_summary where `+condition)
		if err != nil || n > 0 {
			return err
		}
		if err := trial.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// writeCalm writes events at once, each of another key, and returns when they have come to all who live, or when they are late.
func (h *harness) writeCalm(ctx context.Context, events int, beside string) (calm, error) {
	c := calm{Limit: 15 * time.Second, Beside: beside}
	at, kinds, poisons := make([]string, events), make([]string, events), make([]string, events)
	t := &txn{Began: time.Now(), Fate: committed}
	for i := range at {
		at[i], kinds[i] = fmt.Sprintf("x%d", i), []string{"tick", "alarm"}[i%2]
		c.IDs = append(c.IDs, h.next.Add(1))
		t.Writes = append(t.Writes, write{ID: c.IDs[i]})
	}
	due := map[string]int{}
	for route, r := range h.receivers {
		due[route] = r.distinct() + events
	}
	if err := h.command(ctx, `select app.write_all($1, $2, $3, $4)`, at, c.IDs, kinds, poisons); err != nil {
		return c, err
	}
	c.Sent = time.Now()
	t.Ended = c.Sent
	h.txns.Add(t)
	for late := c.Sent.Add(c.Limit + 500*time.Millisecond); time.Now().Before(late); {
		n, err := h.number(ctx, `select count(*) from app.effect where id = any ($1)`, c.IDs)
		if err != nil {
			return c, err
		}
		left := events - int(n)
		for route, r := range h.receivers {
			left += max(0, due[route]-r.distinct())
		}
		if left <= 0 {
			break
		}
		if err := trial.Wait(ctx, 50*time.Millisecond); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Finding is one that is open when all is at rest.
type Finding struct{ Kind, Subject, Detail string }

// findings are those that are open once more has been looked, but for what is wrong in the end (dead letters, a dead
// target), and what closes by its age.
func (h *harness) findings(ctx context.Context) ([]Finding, error) {
	for _, sql := range []string{`select tidemark.lag_findings()`, `select count(*) from tidemark.stale_check()`, `select count(*) from tidemark.maintain()`} {
		if err := h.command(ctx, sql); err != nil {
			return nil, err
		}
	}
	list, _, err := ask(ctx, h, pgx.RowToStructByPos[Finding], `select kind, subject, detail from tidemark.finding
		where closed_at is null and not derived and kind not in ('cursor_dlq', 'dlq_overflow', 'cursor_lease_conflict') and subject <> $1
		order by 1, 2`, unreachable)
	return list, err
}
