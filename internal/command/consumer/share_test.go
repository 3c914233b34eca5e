package consumer_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// shared is how many passes of several partitions there were.
func (w *world) shared() int {
	w.t.Helper()
	return len(w.rows(`select xmin::text from tidemark.command_claim where state = 'processed' group by 1 having count(distinct partition) > 1`))
}

// A crowd is many partitions that get commands at once.
type crowd struct {
	*world
	partitions, next int
	want             map[int][]string // effects of each partition
}

func newCrowd(t *testing.T, partitions int32) *crowd {
	t.Helper()
	return &crowd{newWorld(t, partitions), int(partitions), 0, map[int][]string{}}
}

// send gives each partition three commands, all at once. change has the payload of the first one of a partition.
func (c *crowd) send(change map[int]string) {
	c.t.Helper()
	var all []*kgo.Record
	for p := range c.partitions {
		for n := range 3 {
			id := c.next
			c.next++
			payload, changed := change[p]
			if !changed || n > 0 {
				payload = `{"id": ID}`
				c.want[p] = append(c.want[p], fmt.Sprint(id))
			}
			all = append(all, &kgo.Record{
				Topic: c.topic, Partition: int32(p), Key: fmt.Append(nil, "lane", id),
				Value: c.envelope(fmt.Sprint("i", id), strings.ReplaceAll(payload, "ID", fmt.Sprint(id)), nil),
			})
		}
	}
	if err := c.client.ProduceSync(c.t.Context(), all...).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

// share sends until partitions have shared one more pass.
func (c *crowd) share() {
	c.t.Helper()
	was := c.shared()
	until(c.t, "a shared pass", func() bool {
		c.send(nil)
		c.settled()
		return c.shared() > was
	})
}

// settled waits until all is done: one effect of each command, in the order of its partition, and one answer.
func (c *crowd) settled() {
	c.t.Helper()
	var want []string
	for p := range c.partitions {
		for _, id := range c.want[p] {
			want = append(want, fmt.Sprint(p, " ", id))
		}
	}
	c.eventually(`select concat_ws(' ', m.partition, e.id) from app.effect e join tidemark.command_claim m on m.idempotency_key = 'i' || e.id order by m.partition, e.n`, want...)
	c.eventually(`select concat_ws(' ', count(*), count(distinct payload ->> 'idempotency_key')) from tidemark.outbox where type like 'result.%'`, fmt.Sprint(c.next, " ", c.next))
	c.eventually(`select sum(watermark_id::bigint)::text from tidemark.worker_cursor where worker = 'commands' and source like 'kafka:%'`, fmt.Sprint(c.next))
}

// CM4, CM7: partitions share passes. Where one of them cannot be made, nothing of it took effect, and the passes of the partitions find
// what is to blame, which is the only one that it has to do with.
func TestConsumerSharesPasses(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 8)
	c.run()
	failed := func(code string, count int) {
		t.Helper()
		c.eventually(`select concat_ws(' ', error_code, count(*)) from tidemark.command_claim where state <> 'processed' and error_code = '`+code+`' group by error_code`, fmt.Sprint(code, " ", count))
	}
	c.share()
	c.send(map[int]string{1: `{"id": "no number"}`, 5: `{"id": "no number"}`})
	c.settled()
	failed("sql.data", 2)

	c.share()
	c.send(map[int]string{1: `{"id": ID, "sleep": 1000}`, 5: `{"id": ID, "sleep": 1000}`})
	c.settled()
	failed("runtime.timeout", 2)

	c.share()
	c.send(map[int]string{2: `{"id": ID, "fatal": true}`, 6: `{"id": ID, "fatal": true}`})
	c.settled()
	c.eventually(`select count(*)::text from tidemark.command_parked where call -> 'payload' ? 'fatal'`, "2")

	// As if another had taken two partitions over.
	c.share()
	c.exec(`update tidemark.heartbeat set lease_epoch = lease_epoch + 1, lease_owner = 'other', lease_until = clock_timestamp() + interval '2 seconds'
		where executor_id in ('commands/kafka:' || $1 || '/3', 'commands/kafka:' || $1 || '/7')`, c.topic)
	c.send(nil)
	c.eventually(`select subject from tidemark.finding where kind = 'cursor_lease_conflict' order by 1`, "commands/kafka:"+c.topic+"/3", "commands/kafka:"+c.topic+"/7")
	c.settled()
	c.share()
}

// Many idle partitions renew their leases together.
func TestConsumerRenewsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20)
	w.run()
	// Of three topics. Each has renewed its lease beside the pass that follows a claim.
	w.eventually(`select count(*)::text from tidemark.heartbeat where executor_id like 'commands/kafka:%' and ticks_total > 2 and lease_owner is not null`, "60")
	times := w.rows(`select count(distinct last_beat_at)::text from tidemark.heartbeat where executor_id like 'commands/kafka:%'`)
	if n, err := strconv.Atoi(times[0]); err != nil || n > 20 {
		t.Errorf("60 idle partitions have renewed their leases at %d times", n)
	}
}
