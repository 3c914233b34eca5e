package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

const (
	stormFrom   = 1000 // its first invoice
	stormBatch  = 20   // records written at once
	mostResends = 3
)

var customers = []string{"ada", "bob", "cyd"}

// storm asks for many charges, each of them up to four times, while everything is stopped once.
func (c *commands) storm(ctx context.Context) error {
	c.say("\n5. A storm: %d charges, each asked for one to four times, while the daemon, PostgreSQL and the broker are killed or stopped.", c.options.Invoices)
	began := time.Now()
	note := func(text string) { c.say("%7.1f s  %s", time.Since(began).Seconds(), text) }
	var batch []*kgo.Record
	disturb := []func() error{
		func() error {
			note("the daemon is killed (kill -9); another one takes over")
			c.daemon.kill()
			return c.daemon.start(ctx)
		},
		func() error {
			note("PostgreSQL is killed (kill -9), and started again")
			_ = c.conn.Close(ctx)
			if err := c.server.Kill(); err != nil {
				return err
			}
			if err := c.server.Restart(ctx); err != nil {
				return err
			}
			var err error
			c.conn, err = pgx.Connect(ctx, c.server.URL("postgres"))
			return err
		},
		func() error {
			note("the broker is stopped, and started again after a second")
			c.broker.Close()
			if err := trial.Wait(ctx, time.Second); err != nil {
				return err
			}
			return c.startBroker()
		},
	}
	for n := range c.options.Invoices {
		it := charge{stormFrom + n, customers[rand.IntN(len(customers))], 1 + rand.IntN(10_000)}
		c.asked[it.Invoice], c.cents = 1+rand.IntN(mostResends+1), c.cents+int64(it.Cents)
		for range c.asked[it.Invoice] {
			// A key of the record of its own: the same command is in both partitions, perhaps at once.
			batch = append(batch, &kgo.Record{
				Topic: "db-events.billing", Key: fmt.Appendf(nil, "%d", rand.IntN(50)), Value: envelope(producerName, fmt.Sprintf("storm-%d", it.Invoice), it),
			})
		}
		if len(batch) >= stormBatch || n == c.options.Invoices-1 {
			rand.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			if err := c.producers.ProduceSync(ctx, batch...).FirstErr(); err != nil {
				return err
			}
			batch = batch[:0]
		}
		if len(disturb) > 0 && n > (4-len(disturb))*c.options.Invoices/4 {
			if err := disturb[0](); err != nil {
				return err
			}
			disturb = disturb[1:]
		}
	}
	note("all is sent")
	err := c.until(ctx, int64(c.options.Invoices), "charges of the storm", `select count(*) from demo_billing.charge where invoice >= $1`, stormFrom)
	if err == nil {
		note("all is charged")
	}
	return err
}

// results reads what the storm's producers get: by status how many, for each key. The broker may have a result twice, under one
// id: the daemon was killed before it knew that the first one had arrived.
func (c *commands) results(ctx context.Context, want int) (processed map[string]int, all int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandsPatience, errors.New("not all results arrive: please report it"))
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.address), kgo.ConsumeTopics("db-results.billing"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	processed = map[string]int{}
	seen := map[string]bool{}
	for len(seen) < want {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		for _, r := range fetches.Records() {
			var it struct {
				EventID string `json:"event_id"`
				Status  string `json:"status"`
				Key     string `json:"idempotency_key"`
			}
			if err := json.Unmarshal(r.Value, &it); err != nil {
				return nil, 0, err
			}
			if len(it.Key) < 6 || it.Key[:6] != "storm-" || seen[it.EventID] {
				continue
			}
			seen[it.EventID] = true
			if it.Status == "processed" {
				processed[it.Key]++
			}
		}
	}
	return processed, len(seen), nil
}

// report counts in the services' own tables and in the topic of the results.
func (c *commands) report(ctx context.Context) error {
	asked := 0
	for _, n := range c.asked {
		asked += n
	}
	processed, results, err := c.results(ctx, asked)
	if err != nil {
		return err
	}
	charges, err := c.number(ctx, `select count(*) from demo_billing.charge where invoice >= $1`, stormFrom)
	if err != nil {
		return err
	}
	cents, err := c.number(ctx, `select sum(cents) from demo_billing.charge where invoice >= $1`, stormFrom)
	if err != nil {
		return err
	}
	once := 0
	for _, n := range processed {
		if n == 1 {
			once++
		}
	}
	c.say("\n6. What came of it, counted in the services' own tables and in the topic of the results")
	line := func(what string, got, want int64) {
		c.say("   %-44s %8s   must be %8s", what, thousands(int(got)), thousands(int(want)))
	}
	line("charges in demo_billing.charge", charges, int64(c.options.Invoices))
	line("cents charged", cents, c.cents)
	line("results, one for each time that was asked", int64(results), int64(asked))
	line("keys with exactly one result processed", int64(once), int64(c.options.Invoices))
	c.say(`
Look further, in a database of your own:
   tidemark pack install commands-demo          and then: its README
   docs/command-tutorial.md                     a service of your own, in ten minutes`)
	if charges != int64(c.options.Invoices) || cents != c.cents || once != c.options.Invoices || len(processed) != c.options.Invoices || results != asked {
		return errors.New("the result is not what Tidemark promises: please report it")
	}
	return c.expect(ctx, 0, "charges of forgers", `select count(*) from demo_billing.charge where invoice = 666`)
}
