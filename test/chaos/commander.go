package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

const (
	commanders    = 4
	commandKeys   = 60
	troubledKeys  = 6    // of commands that fail for a while
	commandsAhead = 1500 // records that may be unread or parked before the commanders wait
)

// A commander asks for commands, of many kinds.
type commander struct {
	*harness
	random *rand.Rand
	client *kgo.Client
}

// envelope is a command as its producer writes it.
type envelope struct {
	EventID        string         `json:"event_id"`
	Service        string         `json:"service"`
	Command        string         `json:"command"`
	Version        int            `json:"command_version"`
	Schema         int            `json:"schema_version"`
	Payload        map[string]any `json:"payload"`
	IdempotencyKey string         `json:"idempotency_key"`
	OccurredAt     string         `json:"occurred_at"`
	TraceID        string         `json:"trace_id"`
	Metadata       struct {
		Producer string `json:"producer"`
	} `json:"metadata"`
}

// commandUntil asks until stop is closed.
func (h *harness) commandUntil(ctx context.Context, stop <-chan struct{}, id int) {
	c := &commander{harness: h, random: rand.New(rand.NewPCG(h.seed, uint64(9000+id)))}
	var err error
	if c.client, err = h.kafka(nil); err != nil {
		h.brokenLater(err.Error())
		return
	}
	defer c.client.Close()
	for ctx.Err() == nil {
		select {
		case <-stop:
			return
		default:
		}
		if h.commanding.sent.Load()-h.commanding.ended.Load() > commandsAhead {
			_ = trial.Wait(ctx, 50*time.Millisecond)
			continue
		}
		var batch []*kgo.Record
		for range 1 + c.random.IntN(12) {
			batch = append(batch, c.next()...)
		}
		err := c.client.ProduceSync(ctx, batch...).FirstErr()
		h.commanding.sent.Add(int64(len(batch)))
		if err == nil { // else it was written or not: the topic tells
			h.commanding.asked.Add(batch...)
		}
		_ = trial.Wait(ctx, time.Duration(c.random.IntN(40))*time.Millisecond)
	}
}

// next are the next records.
func (c *commander) next() []*kgo.Record {
	service := "till"
	if c.random.IntN(3) == 0 {
		service = "depot"
	}
	id := c.harness.next.Add(1)
	key := fmt.Sprintf("c%d", c.random.IntN(commandKeys))
	if c.random.IntN(8) == 0 {
		key = fmt.Sprintf("t%d", c.random.IntN(troubledKeys))
	}
	e := c.envelope(service, key, id)
	switch c.random.IntN(12) {
	case 0, 1:
		return []*kgo.Record{c.sign(service, id)}
	case 2:
		return []*kgo.Record{record(c.envelope(mirror, key, id), key)}
	}
	switch dice := c.random.IntN(100); {
	case dice < 8:
		return c.again()
	case dice < 10:
		return c.reuse(e)
	case dice < 13: // asked for in two partitions at once
		e.Payload["key"] = fmt.Sprintf("twin%d", id)
		first, second := record(e, fmt.Sprintf("twin%d", id)), c.envelope(service, key, id)
		second.Payload = e.Payload
		other := record(second, fmt.Sprintf("twin%d", id))
		other.Partition = (first.Partition + 1) % services[service]
		return []*kgo.Record{first, other}
	case dice < 15:
		e.Payload["poison"] = true
	case dice < 16:
		e.Command = "other"
	case dice < 17:
		delete(e.Payload, "id")
	case dice < 18:
		e.Metadata.Producer = "stranger"
	case dice < 19:
		e.Service = "elsewhere"
		r := record(e, key)
		r.Topic, r.Partition = asks+service, partition(service, key)
		return []*kgo.Record{r}
	case dice < 20:
		r := record(e, key)
		r.Value = append(r.Value[:len(r.Value)/2:len(r.Value)/2], 0, 0xff)
		return []*kgo.Record{r}
	}
	return []*kgo.Record{record(e, key)}
}

func (c *commander) envelope(service, key string, id int64) envelope {
	e := envelope{
		EventID: fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", c.random.Uint32(), c.random.IntN(1<<16), c.random.IntN(1<<12), c.random.IntN(1<<12), c.random.Int64N(1<<48)),
		Service: service, Command: "take", Version: 1, Schema: 1, Payload: map[string]any{"id": id, "key": key},
		IdempotencyKey: fmt.Sprintf("i%d", id), OccurredAt: time.Now().UTC().Format(time.RFC3339Nano), TraceID: fmt.Sprintf("%032x", id),
	}
	e.Metadata.Producer = "shop"
	return e
}

// sign is a command on the shared topic: of the producer, as a rule, else of a forger. Its key is on no other topic.
func (c *commander) sign(service string, id int64) *kgo.Record {
	key := fmt.Sprintf("g%d", c.random.IntN(commandKeys))
	r := record(c.envelope(service, key, id), key)
	r.Topic, r.Partition = shared, partitionOf(key, sharedPartitions)
	kid := kidOf(service)
	switch c.random.IntN(12) {
	case 0: // without a signature
		return r
	case 1: // by another key
		_, forged, err := ed25519.GenerateKey(nil)
		if err != nil {
			panic(err) // the system's random numbers never fail
		}
		return signed(r, kid, forged)
	case 2: // of another record
		signed(r, kid, c.commanding.keys[kid])
		r.Value = record(c.envelope(service, key, id), key).Value
		return r
	case 3: // by the key of another service
		other := kidOf(mirror)
		return signed(r, other, c.commanding.keys[other])
	}
	return signed(r, kid, c.commanding.keys[kid])
}

// again is a record that was sent before: byte for byte, or as another asking.
func (c *commander) again() []*kgo.Record {
	before := c.before()
	if before == nil {
		return nil
	}
	r := &kgo.Record{Topic: before.Topic, Partition: before.Partition, Key: before.Key, Value: before.Value, Headers: before.Headers}
	var e envelope
	if r.Topic != shared && c.random.IntN(2) == 0 && json.Unmarshal(r.Value, &e) == nil && e.Service != "elsewhere" {
		e.EventID = c.envelope("", "", 0).EventID
		again := record(e, string(r.Key))
		again.Topic, again.Partition = r.Topic, r.Partition
		r = again
	}
	return []*kgo.Record{r}
}

// reuse asks for something else under a key that was used.
func (c *commander) reuse(e envelope) []*kgo.Record {
	before := c.before()
	var was envelope
	if before == nil || before.Topic == shared || json.Unmarshal(before.Value, &was) != nil || was.Service != e.Service {
		return nil
	}
	e.IdempotencyKey = was.IdempotencyKey
	e.Payload["key"] = string(before.Key)
	r := record(e, string(before.Key))
	r.Partition = before.Partition
	return []*kgo.Record{r}
}

// before is one of the last records that were sent.
func (c *commander) before() *kgo.Record {
	all := c.commanding.asked.Last(400)
	if len(all) == 0 {
		return nil
	}
	return all[c.random.IntN(len(all))]
}

func record(e envelope, key string) *kgo.Record {
	value, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return &kgo.Record{Topic: asks + e.Service, Partition: partition(e.Service, key), Key: []byte(key), Value: value}
}

func partition(service, key string) int32 { return partitionOf(key, max(1, services[service])) }

func partitionOf(key string, partitions int32) int32 {
	f := fnv.New32a()
	_, _ = f.Write([]byte(key))
	return int32(f.Sum32() % uint32(partitions))
}
