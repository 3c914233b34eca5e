package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// message sends several transactions as one message: now() of each is the arrival of the message, and between two of
// them the server shows no transaction.
func (p *producer) message(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, turn)
	defer cancel()
	for range 1000 {
		if !p.hush.Load() {
			break
		}
		_ = trial.Wait(ctx, 10*time.Millisecond)
	}
	p.send(ctx, 2+p.random.IntN(3), p.random.IntN(10000))
}

// messageAlone sends messages of two transactions while all others write in short ones, so that nothing but the message
// itself keeps a reader by time behind their second transactions.
func messageAlone(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	return alone, h.alone(random, func(ctx context.Context, p *producer) error {
		for range 3 { // a pass has to look just when nothing is shown
			if p.conn != nil {
				limited, cancel := context.WithTimeout(ctx, turn)
				p.send(limited, 2, 150000)
				cancel()
			}
		}
		return nil
	})
}

// send sends so many transactions as one message, with commits of nothing between them: they take a while, in which
// nothing is shown.
func (p *producer) send(ctx context.Context, transactions, pause int) {
	var text strings.Builder
	text.WriteString("set client_min_messages = error;")
	var txns []*txn
	for range transactions {
		id := p.next.Add(1)
		txns = append(txns, &txn{Began: time.Now(), Fate: unknown, Writes: []write{{ID: id}}})
		fmt.Fprintf(&text, `begin; select app.write_all('{k%d}', '{%d}', '{tick}', '{""}');`, p.random.IntN(keys), id)
		if p.withTables() {
			fmt.Fprintf(&text, `select app.append(%d, false, '%016x-%d', now());`, id, p.random.Uint64(), id)
		}
		if len(txns) == 1 { // longer than the margin of a clock
			text.WriteString("select pg_sleep(1.2);")
		}
		fmt.Fprintf(&text, "commit;%s", strings.Repeat("commit;", pause))
	}
	results, err := p.conn.PgConn().Exec(ctx, text.String()).ReadAll()
	// A message ends at its first error. The answers say which of its transactions were committed.
	done := 0
	for i, r := range results {
		// The first COMMIT behind a SELECT: the others commit nothing, and say the same.
		if r.CommandTag.String() == "COMMIT" && i > 0 && done < len(txns) && strings.HasPrefix(results[i-1].CommandTag.String(), "SELECT") {
			txns[done].Fate = committed
			p.acknowledged.Add(1)
			done++
		}
	}
	for _, t := range txns[done:] {
		if err == nil || !p.conn.IsClosed() {
			t.Fate = rolledBack
		}
	}
	for _, t := range txns {
		t.Ended = time.Now()
	}
	p.txns.Add(txns...)
	if p.conn.IsClosed() {
		p.conn = nil
	} else if err != nil {
		if _, err := p.conn.Exec(ctx, "rollback"); err != nil {
			p.hangUp()
		}
	}
}
