package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

const (
	producers = 6
	slow      = 4 // producers whose transactions stay open
	keys      = 400
	slowKeys  = 20 * slow
	turn      = 20 * time.Second // after which a producer gives a statement up
)

// A producer writes in transactions of many shapes.
type producer struct {
	*harness
	id     int
	random *rand.Rand
	conn   *pgx.Conn
	turns  int
}

// produce writes until stop is closed.
func (h *harness) produce(ctx context.Context, stop <-chan struct{}, id int) {
	p := &producer{harness: h, id: id, random: rand.New(rand.NewPCG(h.seed, uint64(id)))}
	defer p.hangUp()
	for ctx.Err() == nil {
		select {
		case <-stop:
			return
		default:
		}
		if h.hush.Load() || h.still.Load() || h.crowded() {
			_ = trial.Wait(ctx, 50*time.Millisecond)
			continue
		}
		if p.conn == nil {
			var err error
			if p.conn, err = connect(ctx, h.writerURL()); err != nil {
				return
			}
		}
		p.turns++
		if id < producers {
			if p.random.IntN(12) == 0 {
				p.message(ctx)
			} else {
				p.quick(ctx)
			}
			_ = trial.Wait(ctx, time.Duration(p.random.IntN(8))*time.Millisecond)
		} else {
			p.linger(ctx)
		}
	}
}

// crowded: the receivers are so far behind that it would take long to make it good.
func (h *harness) crowded() bool {
	written := int(h.acknowledged.Load())
	for _, r := range []string{healthy, flaky} {
		if written-h.receivers[r].distinct() > h.backlog {
			return true
		}
	}
	return false
}

func (p *producer) hangUp() {
	if p.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.conn.Close(ctx)
		p.conn = nil
	}
}

// A draft is a transaction in the making.
type draft struct {
	p   *producer
	ctx context.Context //nolint:containedctx // of one transaction
	txn *txn
	err error // the first one; nothing is done after it
}

func (p *producer) begin(ctx context.Context) (*draft, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, turn)
	d := &draft{p: p, ctx: ctx, txn: &txn{Began: time.Now()}}
	d.exec("begin; set local lock_timeout = '2s'")
	return d, cancel
}

func (d *draft) exec(sql string, args ...any) {
	if d.err == nil {
		_, d.err = d.p.conn.Exec(d.ctx, sql, args...)
	}
}

// write emits one event for each key, and appends a row to each of the tables.
func (d *draft) write(undone bool, at ...string) {
	ids, kinds, poisons := make([]int64, len(at)), make([]string, len(at)), make([]string, len(at))
	for i := range at {
		ids[i], kinds[i] = d.p.next.Add(1), "tick"
		if d.p.random.IntN(12) == 0 {
			kinds[i] = "alarm"
		}
		switch d.p.random.IntN(3000) {
		case 0:
			poisons[i] = "web"
		case 1:
			poisons[i] = "sql"
		}
		d.txn.Writes = append(d.txn.Writes, write{ids[i], undone})
	}
	d.exec(`select app.write_all($1, $2, $3, $4)`, at, ids, kinds, poisons)
	if d.p.withTables() {
		d.append(ids[0])
	}
}

// end concludes the transaction: it can have been committed only if that was asked for.
func (d *draft) end(commit bool) {
	d.txn.Fate = rolledBack
	d.hushed()
	if commit && d.err == nil {
		d.txn.Fate = unknown
		tag, err := d.p.conn.Exec(d.ctx, "commit")
		switch {
		case err != nil:
			d.err = err
		case tag.String() == "ROLLBACK":
			d.txn.Fate = rolledBack
		default:
			d.txn.Fate = committed
			for _, w := range d.txn.Writes {
				if !w.Undone {
					d.p.acknowledged.Add(1)
				}
			}
		}
	} else if d.err == nil {
		d.exec("rollback")
	}
	d.close()
}

// hushed waits while only a scene may commit.
func (d *draft) hushed() {
	for range 1000 {
		if !d.p.hush.Load() || d.txn.Async {
			return
		}
		_ = trial.Wait(d.ctx, 10*time.Millisecond)
	}
}

// close writes down what became of it.
func (d *draft) close() {
	d.txn.Ended = time.Now()
	d.p.txns.Add(d.txn)
	if d.err == nil {
		return
	}
	if d.p.conn.IsClosed() {
		d.p.conn = nil
	} else if _, err := d.p.conn.Exec(d.ctx, "rollback"); err != nil {
		d.p.hangUp()
	}
}

// quick is a transaction of the usual kind.
func (p *producer) quick(ctx context.Context) {
	d, cancel := p.begin(ctx)
	defer cancel()
	if p.random.IntN(8) == 0 {
		d.exec("set local synchronous_commit = off")
		d.txn.Async = true
	}
	n := 1 + p.random.IntN(4)
	if p.random.IntN(3) == 0 {
		n = 5 + p.random.IntN(40)
	}
	chosen := make([]string, n)
	for i := range chosen {
		chosen[i] = fmt.Sprintf("k%d", p.random.IntN(keys))
	}
	slices.Sort(chosen) // so that no two wait for each other
	d.write(false, chosen...)
	last := chosen[n-1]
	if p.random.IntN(6) == 0 {
		d.exec("savepoint s")
		undo := p.random.IntN(2) == 0
		d.write(undo, last)
		if undo {
			d.exec("rollback to savepoint s")
		} else {
			d.exec("release savepoint s")
		}
		d.write(false, last)
	}
	d.end(p.random.IntN(12) != 0)
}

// linger is a transaction that stays open, so that the cursor has to go past it.
func (p *producer) linger(ctx context.Context) {
	d, cancel := p.begin(ctx)
	defer cancel()
	if p.random.IntN(4) == 0 {
		d.exec("set local synchronous_commit = off")
		d.txn.Async = true
	}
	for range 1 + p.random.IntN(3) {
		d.write(false, p.slowKey())
		pause := time.Duration(p.random.IntN(400)) * time.Millisecond
		if p.random.IntN(8) == 0 {
			pause = time.Duration(1+p.random.IntN(4)) * time.Second
		}
		_ = trial.Wait(d.ctx, pause)
	}
	if p.random.IntN(5) == 0 {
		d.prepare(p.random.IntN(4) != 0, time.Duration(p.random.IntN(6000))*time.Millisecond)
		return
	}
	d.end(p.random.IntN(5) != 0)
}

// slowKey is one that no other producer writes to, and this one not again soon.
func (p *producer) slowKey() string {
	p.turns++
	return fmt.Sprintf("s%d", (p.id-producers)*20+p.turns%20)
}
