package main

import (
	"crypto/ed25519"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// askedKey is an idempotency key of a service.
type askedKey struct{ service, key string }

// place is a record of a topic of commands.
type place struct {
	service   string
	partition int32
	offset    int64
}

func (p place) String() string { return fmt.Sprintf("%s/%d@%d", p.service, p.partition, p.offset) }

// expected is what has to come of the records, if the commands of a key run one after the other in the order of their offsets.
type expected struct {
	chains   map[askedKey]string         // by service and ordering key
	effects  map[int64]place             // by id
	statuses map[askedKey]map[string]int // answers by idempotency key
	events   map[askedKey]int            // answers by event id
	letters  map[place]Asked
}

// expect follows the records. It knows what a command of the application does, and the contract; nothing of the product.
func expect(records []Asked, signers map[string]ed25519.PublicKey) *expected {
	x := &expected{
		chains: map[askedKey]string{}, effects: map[int64]place{}, statuses: map[askedKey]map[string]int{},
		events: map[askedKey]int{}, letters: map[place]Asked{},
	}
	first := map[askedKey]int64{}
	for _, r := range records {
		at := place{r.Service, r.Partition, r.Offset}
		var e struct {
			EventID        string `json:"event_id"`
			Service        string `json:"service"`
			Command        string `json:"command"`
			IdempotencyKey string `json:"idempotency_key"`
			Payload        struct {
				ID     *int64 `json:"id"`
				Key    string `json:"key"`
				Poison bool   `json:"poison"`
			} `json:"payload"`
			Metadata struct {
				Producer string `json:"producer"`
			} `json:"metadata"`
		}
		readable := json.Unmarshal([]byte(r.Value), &e) == nil
		if r.Service == shared && (!readable || !proves(signers, e.Service, r)) {
			continue // its dead letter stays in the database: no service is known to be asked
		}
		if !readable || r.Service != shared && e.Service != r.Service || e.Metadata.Producer != "shop" {
			x.letters[at] = r
			continue
		}
		key := askedKey{e.Service, e.IdempotencyKey}
		status := "processed"
		id, claimed := first[key]
		switch {
		case e.Command != "take" || e.Payload.ID == nil:
			status = "rejected"
		case claimed && id == *e.Payload.ID:
			status = "duplicate"
		case claimed:
			status = "failed_terminal"
			x.letters[at] = r
		case e.Payload.Poison:
			status = "failed_terminal"
			first[key] = *e.Payload.ID
			x.letters[at] = r
		default:
			first[key] = *e.Payload.ID
			x.effects[*e.Payload.ID] = at
			if e.Service == mirror {
				break // what was run dry has its effect later, with the replay
			}
			chain := askedKey{e.Service, e.Payload.Key}
			sum := md5.Sum(fmt.Appendf(nil, "%s %d", x.chains[chain], *e.Payload.ID))
			x.chains[chain] = hex.EncodeToString(sum[:])
		}
		if x.statuses[key] == nil {
			x.statuses[key] = map[string]int{}
		}
		x.statuses[key][status]++
		x.events[askedKey{e.Service, e.EventID}]++
	}
	return x
}

// commandsServed: each command has one effect and one answer, in the order of its key, and each record is accounted for.
func (c *checker) commandsServed() {
	x := expect(c.Asked, c.Signers)
	c.commandEffects(x)
	c.commandAnswers(x)
	c.commandLetters(x)
	c.commandGates()
	c.cursorsNeverBack()
}

// I2, I3, I4 and I5 of commands: the final state is that of each key's commands one after the other.
func (c *checker) commandEffects(x *expected) {
	taken := map[int64]int{}
	for _, t := range c.Taken {
		taken[t.ID]++
		_, wanted := x.effects[t.ID]
		switch {
		case taken[t.ID] == 2:
			c.report("I4", "%s: command %d (key %s) has more than one effect", t.Service, t.ID, t.Key)
		case taken[t.ID] == 1 && !wanted:
			c.report("I2", "%s: command %d (key %s) has an effect and was not to have one", t.Service, t.ID, t.Key)
		}
	}
	if c.Unquiet != "" {
		return // some may be on their way
	}
	lost := false
	for _, id := range slices.Sorted(maps.Keys(x.effects)) {
		if taken[id] == 0 {
			lost = true
			c.report("I3", "%s: command %d has no effect", x.effects[id], id)
		}
	}
	chains := map[askedKey]string{}
	for _, l := range c.Chains {
		chains[askedKey{l.Service, l.Key}] = l.State
	}
	for key, state := range x.chains {
		if chains[key] != state && !lost {
			c.report("I5", "%s: the commands of key %s took effect in another order than that of their offsets, or not as often", key.service, key.key)
		}
	}
}

// I12: each asking has one answer in the end, and each key one that says processed, at most.
func (c *checker) commandAnswers(x *expected) {
	named, events, statuses := map[string]bool{}, map[askedKey]int{}, map[askedKey]map[string]int{}
	for _, a := range c.Answered {
		if named[a.Name] || a.Status == "failed_retryable" { // a copy, or not the last word
			continue
		}
		named[a.Name] = true
		key := askedKey{a.Service, a.IdempotencyKey}
		if statuses[key] == nil {
			statuses[key] = map[string]int{}
		}
		statuses[key][a.Status]++
		events[askedKey{a.Service, a.EventID}]++
	}
	for _, key := range sortedKeys(events) {
		if got := events[key]; got > x.events[key] {
			c.report("I12", "%s: event %s was answered %d times, and asked %d times", key.service, key.key, got, x.events[key])
		}
	}
	for _, key := range sortedKeys(statuses) {
		if got := statuses[key]["processed"]; got > 1 {
			c.report("I12", "%s: key %s was processed %d times", key.service, key.key, got)
		}
	}
	if c.Unquiet != "" {
		return
	}
	for _, key := range sortedKeys(x.events) {
		if got := events[key]; got < x.events[key] && key.service != mirror { // what is asked again in dry run has no answer
			c.report("I12", "%s: event %s was answered %d times, and asked %d times", key.service, key.key, got, x.events[key])
		}
	}
	for _, key := range sortedKeys(x.statuses) {
		if key.service == mirror {
			if got := statuses[key]["processed"]; got != x.statuses[key]["processed"] {
				c.report("I12", "%s: key %s was processed %d times, and must be %d times", key.service, key.key, got, x.statuses[key]["processed"])
			}
		} else if !maps.Equal(statuses[key], x.statuses[key]) {
			c.report("I12", "%s: key %s has the answers %v, and must have %v", key.service, key.key, statuses[key], x.statuses[key])
		}
	}
}

func sortedKeys[V any](m map[askedKey]V) []askedKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b askedKey) int { return strings.Compare(a.service+" "+a.key, b.service+" "+b.key) })
}

// I12: what was refused has a dead letter, byte for byte, and nothing else has.
func (c *checker) commandLetters(x *expected) {
	came := map[place]bool{}
	for _, r := range c.Refused {
		at := place{r.Service, r.Partition, r.Offset}
		was, wanted := x.letters[at]
		switch {
		case came[at]:
		case !wanted:
			c.report("I12", "%s is a dead letter, and nothing is wrong with it", at)
		case r.Value != was.Value || r.Key != was.Key:
			c.report("I12", "the dead letter of %s is another record: %q %q", at, r.Key, r.Value)
		}
		came[at] = true
	}
	for at := range x.letters {
		if !came[at] && c.Unquiet == "" {
			c.report("I12", "%s was refused, and has no dead letter", at)
		}
	}
}

// I6 of commands: a pass looks at the gates after its last effect, so there is no second of grace.
func (c *checker) commandGates() {
	for _, x := range c.Closings {
		for i := range c.Taken {
			t := &c.Taken[i]
			if (x.What == commandsGate || x.What == serviceGate(t.Service)) && t.At.After(x.From) && t.At.Before(x.To) {
				c.report("I6", "%s: command %d took effect %s after %s was closed", t.Service, t.ID, t.At.Sub(x.From).Round(time.Millisecond), x.What)
			}
		}
	}
}

func serviceGate(service string) string { return "commands." + service + ".enabled" }

// I7 of commands.
func (c *checker) cursorsNeverBack() {
	last := map[string]Placed{}
	for _, now := range c.Placed {
		before := last[now.Partition]
		if now.Next < before.Next {
			c.report("I7", "%s went from offset %d to %d at %s", now.Partition, before.Next, now.Next, clock(now.At))
		}
		if now.Epoch < before.Epoch {
			c.report("I7", "the epoch of %s went from %d to %d at %s", now.Partition, before.Epoch, now.Epoch, clock(now.At))
		}
		last[now.Partition] = now
	}
}
