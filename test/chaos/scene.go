package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// Scenes are faults that meet a certain hazard every time, where chance seldom would.

// scratch returns a key that no producer writes to.
func (h *harness) scratch(random *rand.Rand) string { return fmt.Sprintf("x%d", random.IntN(500)) }

// scene gives a writer of its own to do.
func (h *harness) scene(random *rand.Rand, do func(ctx context.Context, p *producer) error) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := connect(ctx, h.writerURL())
		if err != nil {
			return err
		}
		p := &producer{harness: h, random: random, conn: conn}
		defer p.hangUp()
		return do(ctx, p)
	}
}

// lateCommit keeps an event uncommitted for so long that the cursor has gone far past it.
func lateCommit(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	key, open := h.scratch(random), between(random, 2*time.Second, 8*time.Second)
	return "key " + key, h.scene(random, func(ctx context.Context, p *producer) error {
		d, cancel := p.begin(ctx)
		defer cancel()
		d.write(false, key)
		err := trial.Wait(ctx, open)
		d.end(true)
		return err
	})
}

// preparedLate prepares a transaction after the cursor has noted which one keeps its number open: from then on it has another
// identity. Until it is committed it may have to live through a crash of the server.
func preparedLate(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	key, later := h.scratch(random), between(random, 3*time.Second, 6*time.Second)
	return "key " + key, h.scene(random, func(ctx context.Context, p *producer) error {
		d, cancel := p.begin(ctx)
		defer cancel()
		d.write(false, key)
		err := h.awaitFence(d)
		d.prepare(true, later)
		return err
	})
}

// awaitFence returns when the cursor of the log waits for the end of the transaction, or after a while.
func (h *harness) awaitFence(d *draft) error {
	var self string
	if d.err == nil {
		d.err = d.p.conn.QueryRow(d.ctx, `select virtualtransaction from pg_locks where pid = pg_backend_pid() limit 1`).Scan(&self)
	}
	for deadline := time.Now().Add(8 * time.Second); d.err == nil && time.Now().Before(deadline); {
		n, err := h.number(d.ctx, `select count(*) from tidemark.worker_cursor
			where worker = $2 and source = 'outbox' and $1 = any (fence) and not isempty(fenced)`, self, worker)
		if err != nil || n > 0 {
			return err
		}
		if err := trial.Wait(d.ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// preparedCrash has a prepared transaction live through a crash of the server, after which it is another one for
// all who ask: while the cursor waits for the end of the first.
func preparedCrash(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	key := h.scratch(random)
	return "server", h.scene(random, func(ctx context.Context, p *producer) error {
		d, cancel := p.begin(ctx)
		defer cancel()
		d.write(false, key)
		err := h.awaitFence(d)
		d.prepare(true, 5*time.Second)
		return errors.Join(err, h.server.Kill(), h.server.Restart(ctx))
	})
}

// asyncCrash kills the server when commits that did not wait for the disk have just been delivered. No other writer commits
// meanwhile, since that would flush them too.
func asyncCrash(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	return "server", h.scene(random, func(ctx context.Context, p *producer) error {
		h.hush.Store(true)
		defer h.hush.Store(false)
		if err := h.awaitIdle(ctx); err != nil {
			return err
		}
		// With a slow target the pass does not end before we are there.
		h.links[flaky].slow(100 * time.Millisecond)
		defer h.links[flaky].slow(0)
		d, cancel := p.begin(ctx)
		defer cancel()
		d.exec("set local synchronous_commit = off")
		d.txn.Async = true
		d.write(false, h.scratch(random))
		d.end(true)
		id := d.txn.Writes[0].ID
		for range 400 {
			if h.receivers[healthy].latest.Load() == id {
				break
			}
			_ = trial.Wait(ctx, time.Millisecond)
		}
		return errors.Join(h.server.Kill(), h.server.Restart(ctx))
	})
}

// settleLate holds a settle on its way to the database until the daemon has given it up, repeated it on another
// connection and gone on. Then it arrives.
func settleLate(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, 7*time.Second, 10*time.Second)
	return "settle", func(ctx context.Context) error {
		i, err := h.owner(ctx)
		what := fmt.Sprintf("wire %d", i)
		if err != nil || i < 0 || !h.take(what) {
			return err
		}
		defer h.release(what)
		defer h.wires[i].catch("::tidemark.result")() // all that settles has results
		return trial.Wait(ctx, d)
	}
}

// awaitIdle returns when the daemons have delivered what they can, or after a while.
func (h *harness) awaitIdle(ctx context.Context) error {
	for deadline := time.Now().Add(6 * time.Second); time.Now().Before(deadline); {
		n, err := h.number(ctx, `select max(behind) + (select count(*) from tidemark.pending p
				join tidemark.outbound_route r on r.id = p.route_id where r.route_code <> $2)
			from tidemark.worker_health where worker = $1`, worker, unreachable)
		if err != nil || n == 0 {
			return err
		}
		if err := trial.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// keyFails has a receiver refuse a key for a while in which more of it is written.
func keyFails(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	key := h.scratch(random)
	return "key " + key, h.scene(random, func(ctx context.Context, p *producer) error {
		h.receivers[flaky].failKey(key, between(random, 500*time.Millisecond, 3*time.Second))
		for range 3 + random.IntN(12) {
			if p.conn == nil {
				return nil
			}
			d, cancel := p.begin(ctx)
			d.write(false, key)
			d.end(true)
			cancel()
			if err := trial.Wait(ctx, between(random, 0, 400*time.Millisecond)); err != nil {
				return err
			}
		}
		return nil
	})
}

// shut closes something for a while, and writes down exactly when.
func (h *harness) shut(x closing, d time.Duration, set func(ctx context.Context, open bool) error) func(context.Context) error {
	return func(ctx context.Context) error {
		x.Sent = time.Now()
		if err := set(ctx, false); err != nil {
			return err
		}
		x.From = time.Now()
		err := trial.Wait(ctx, d)
		x.To = time.Now()
		if err == nil {
			err = set(ctx, true)
		}
		x.Over = time.Now()
		h.closings.Add(x)
		return err
	}
}

func (h *harness) gate(name string, random *rand.Rand) func(context.Context) error {
	return h.shut(closing{What: name}, between(random, 1800*time.Millisecond, 3500*time.Millisecond), func(ctx context.Context, open bool) error {
		return h.command(ctx, `select tidemark.gate_set($1, $2, 'chaos')`, name, open)
	})
}

func gateMaster(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	return "gate", h.gate(masterGate, random)
}

func gateWorker(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	return "gate of the worker", h.gate("worker."+worker+".enabled", random)
}

// gateSlow closes the gate while a receiver is slow, so that there is a page in hand.
func gateSlow(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	shut := h.gate(masterGate, random)
	return "gate", func(ctx context.Context) error {
		if !h.take("link " + healthy) {
			return shut(ctx)
		}
		defer h.release("link " + healthy)
		h.links[healthy].slow(100 * time.Millisecond)
		defer h.links[healthy].slow(0)
		if err := trial.Wait(ctx, 2*time.Second); err != nil {
			return err
		}
		return shut(ctx)
	}
}

// routeOff switches a route off, or into dry run.
func routeOff(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	change := [2]string{`{"enabled": true}`, `{"enabled": false}`}
	if random.IntN(2) == 0 {
		change = [2]string{`{"dry_run": false}`, `{"dry_run": true}`}
	}
	return "route " + plain, h.shut(closing{What: "route " + plain, Routes: []string{plain}}, between(random, 1500*time.Millisecond, 3*time.Second), func(ctx context.Context, open bool) error {
		n := 1
		if open {
			n = 0
		}
		return h.command(ctx, `select count(*) from tidemark.route_set($1, $2, 'chaos')`, plain, change[n])
	})
}

// routePause pauses a route, whose events all come later.
func routePause(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	route := []string{healthy, flaky, plain, inside}[random.IntN(4)]
	x := closing{What: "the pause of " + route, Routes: []string{route}, Keeps: true}
	return "pause of " + route, h.shut(x, between(random, 1500*time.Millisecond, 6*time.Second), func(ctx context.Context, open bool) error {
		if open {
			return h.command(ctx, `select tidemark.route_resume($1, 'chaos')`, route)
		}
		return h.command(ctx, `select tidemark.route_pause($1, 'chaos')`, route)
	})
}

// bridge lets emits wake the daemons for a while: a transaction that did so cannot be prepared.
func bridge(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, 3*time.Second, 8*time.Second)
	return "bridge", func(ctx context.Context) error {
		set := func(open bool) error {
			return h.command(ctx, `select tidemark.gate_set('notify.bridge_enabled', $1, 'chaos')`, open)
		}
		if err := set(true); err != nil {
			return err
		}
		if err := trial.Wait(ctx, d); err != nil {
			return err
		}
		return set(false)
	}
}
