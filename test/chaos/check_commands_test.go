package main

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// soundCommands adds the evidence of commands in which everything was right: two of a key with a resend between them, one that
// is poison, one of a stranger, one that is no command, one under a used key, one that is asked for in two partitions.
func soundCommands(e *evidence) {
	ask := func(partition int32, id int64, key string, change func(e *envelope)) Asked {
		env := envelope{
			EventID: fmt.Sprint("e", len(e.Asked)), Service: "till", Command: "take", Payload: map[string]any{"id": id, "key": key},
			IdempotencyKey: fmt.Sprint("i", id),
		}
		env.Metadata.Producer = "shop"
		if change != nil {
			change(&env)
		}
		value, _ := json.Marshal(env)
		a := Asked{"till", partition, int64(len(e.Asked)), key, string(value), ""}
		e.Asked = append(e.Asked, a)
		return a
	}
	answer := func(status string) {
		var env envelope
		_ = json.Unmarshal([]byte(e.Asked[len(e.Asked)-1].Value), &env)
		e.Answered = append(e.Answered, Answered{fmt.Sprint("n", len(e.Answered)), "till", env.EventID, env.IdempotencyKey, status})
	}
	letter := func(a Asked) { e.Refused = append(e.Refused, letterOf(a)) }
	ask(0, 1, "c", nil)
	answer("failed_retryable") // and then
	answer("processed")
	ask(0, 1, "c", nil)
	answer("duplicate")
	ask(0, 2, "c", nil)
	answer("processed")
	letter(ask(0, 3, "c", func(e *envelope) { e.Payload["poison"] = true }))
	answer("failed_terminal")
	letter(ask(0, 4, "c", func(e *envelope) { e.Metadata.Producer = "stranger" }))
	ask(0, 5, "c", func(e *envelope) { delete(e.Payload, "id") })
	answer("rejected")
	letter(ask(0, 6, "c", func(e *envelope) { e.IdempotencyKey = "i1" }))
	answer("failed_terminal")
	ask(1, 7, "twin", nil)
	answer("duplicate")
	ask(2, 7, "twin", nil)
	answer("processed")
	e.Answered = append(e.Answered, e.Answered[1]) // a copy
	e.Taken = []Taken{{at(3), "till", 1, "c"}, {at(4), "till", 2, "c"}, {at(4), "till", 7, "twin"}}
	e.Chains = []Chained{{"till", "c", ""}, {"till", "twin", ""}}
	for i, l := range e.Chains {
		e.Chains[i].State = expect(e.Asked, nil).chains[askedKey{l.Service, l.Key}]
	}
	e.Placed = []Placed{{at(1), "till/0", 1, 1}, {at(1), "till/1", 0, 1}, {at(2), "till/0", 2, 2}}
	e.Closings = append(e.Closings, closing{What: commandsGate, Routes: []string{commandsGate}, Sent: at(9), From: at(10), To: at(12), Over: at(13)})
}

func letterOf(a Asked) Refused { return Refused{a.Service, a.Partition, a.Offset, a.Key, a.Value} }

// The chain of a key, computed by hand: md5(md5(' 1') || ' 2').
func TestChain(t *testing.T) {
	t.Parallel()
	e := &evidence{}
	soundCommands(e)
	if got := expect(e.Asked, nil).chains[askedKey{"till", "c"}]; got != "2742444854c7a12e4d98d505b8507cc6" {
		t.Error(got)
	}
}

// Each way to spoil the evidence of commands breaks the invariants that are named, once each, and no other.
func TestEachViolationOfCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(e *evidence)
		rules []string
	}{
		"nothing": {func(*evidence) {}, nil},
		"effect twice": {func(e *evidence) {
			e.Taken = append(e.Taken, e.Taken[0])
		}, []string{"I4"}},
		"no effect":                   {func(e *evidence) { e.Taken = e.Taken[:2] }, []string{"I3"}},
		"effect of a stranger":        {func(e *evidence) { e.Taken = append(e.Taken, Taken{at(5), "till", 4, "c"}) }, []string{"I2"}},
		"effect of poison":            {func(e *evidence) { e.Taken = append(e.Taken, Taken{at(5), "till", 3, "c"}) }, []string{"I2"}},
		"effect of what is not asked": {func(e *evidence) { e.Taken = append(e.Taken, Taken{at(5), "till", 99, "c"}) }, []string{"I2"}},
		"another order":               {func(e *evidence) { e.Chains[0].State = "x" }, []string{"I5"}},
		"through a closed gate":       {func(e *evidence) { e.Taken[0].At = at(10.1) }, []string{"I6"}},
		"through a service's gate": {func(e *evidence) {
			e.Closings[len(e.Closings)-1].What = serviceGate("till")
			e.Taken[0].At = at(10.1)
		}, []string{"I6"}},
		"offset back":   {func(e *evidence) { e.Placed[2].Next = 0 }, []string{"I7"}},
		"epoch back":    {func(e *evidence) { e.Placed[2].Epoch = 0 }, []string{"I7"}},
		"a result lost": {func(e *evidence) { e.Answered = slices.Delete(e.Answered, 2, 3) }, []string{"I12", "I12"}},
		"a result twice": {func(e *evidence) {
			again := e.Answered[2]
			again.Name = "other"
			e.Answered = append(e.Answered, again)
		}, []string{"I12", "I12"}},
		"processed twice": {func(e *evidence) { e.Answered[2].Status = "processed" }, []string{"I12", "I12"}},
		"answered a stranger": {func(e *evidence) {
			e.Answered = append(e.Answered, Answered{"other", "till", "e4", "i4", "rejected"})
		}, []string{"I12"}},
		"a parked command without its last word": {func(e *evidence) {
			e.Answered = slices.DeleteFunc(e.Answered, func(a Answered) bool { return a.Name == "n1" })
		}, []string{"I12", "I12"}},
		"no dead letter":          {func(e *evidence) { e.Refused = e.Refused[1:] }, []string{"I12"}},
		"another dead letter":     {func(e *evidence) { e.Refused[0].Value += " " }, []string{"I12"}},
		"a needless dead letter":  {func(e *evidence) { e.Refused = append(e.Refused, letterOf(e.Asked[0])) }, []string{"I12"}},
		"a copy of a dead letter": {func(e *evidence) { e.Refused = append(e.Refused, e.Refused[0]) }, nil},
		"twins the other way round": {func(e *evidence) {
			n := len(e.Answered)
			e.Answered[n-3].Status, e.Answered[n-2].Status = "processed", "duplicate"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := sound()
			soundCommands(e)
			c.spoil(e)
			found, _ := check(e)
			var rules []string
			for _, v := range found {
				rules = append(rules, v.Rule)
			}
			if !slices.Equal(rules, c.rules) {
				t.Errorf("got %v, want %v", found, c.rules)
			}
		})
	}
}

// The checker knows a producer's signature from a forger's.
func TestProves(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]ed25519.PublicKey{kidOf("till"): public, kidOf("depot"): public}
	r := signed(&kgo.Record{Topic: shared, Key: []byte("k"), Value: []byte("{}")}, kidOf("till"), private)
	good := Asked{shared, 0, 0, "k", "{}", string(r.Headers[0].Value)}
	for name, c := range map[string]struct {
		service string
		change  func(*Asked)
		want    bool
	}{
		"the producer's":  {"till", func(*Asked) {}, true},
		"another value":   {"till", func(a *Asked) { a.Value = "{} " }, false},
		"another key":     {"till", func(a *Asked) { a.Key = "l" }, false},
		"another service": {"depot", func(*Asked) {}, false},
		"none":            {"till", func(a *Asked) { a.Signature = "" }, false},
		"cut off":         {"till", func(a *Asked) { a.Signature = a.Signature[:len(a.Signature)-4] }, false},
	} {
		a := good
		c.change(&a)
		if got := proves(keys, c.service, a); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	forged := signed(&kgo.Record{Topic: "db-events.till", Key: []byte("k"), Value: []byte("{}")}, kidOf("till"), private)
	if good.Signature = string(forged.Headers[0].Value); proves(keys, "till", good) {
		t.Error("of another topic")
	}
}
