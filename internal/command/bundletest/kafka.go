package bundletest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/bundle"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Topics are those of a service.
type Topics struct {
	Pattern     string // of Commands: its last part is the service
	Commands    string
	Shared      string
	Results     string
	DeadLetters string
}

// topics are named like the database, so that nothing else has them.
func (t *tester) topics(database string) Topics {
	name := strings.ReplaceAll(database, "_", "-")
	return Topics{
		Pattern: name + ".*", Commands: name + "." + t.bundle.Service, Shared: name, Results: name + "-results", DeadLetters: name + "-dead-letters",
	}
}

// kafka is a client of the brokers, which also reads the topics of results and dead letters.
type kafka struct {
	*tester
	scratch
	Topics
	client *kgo.Client
}

// overKafka sends a command as producers do, resends it, and sends what must become a dead letter; and reads what a producer would read.
func (t *tester) overKafka(ctx context.Context, s scratch, c bundle.Command, base bundle.Example) (err error) {
	if len(t.Brokers) == 0 {
		return nil
	}
	k := &kafka{tester: t, scratch: s, Topics: t.topics(s.name)}
	k.client, err = kgo.NewClient(kgo.SeedBrokers(t.Brokers...), kgo.ConsumeTopics(k.Results, k.DeadLetters),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer k.client.Close()
	all := []string{k.Commands, k.Shared, k.Results, k.DeadLetters}
	defer k.deleteTopics(all)
	limited, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	if _, err := kadm.NewClient(k.client).CreateTopics(limited, 2, -1, nil, all...); err != nil {
		return fmt.Errorf("the topics for the test could not be made at %s: %w", strings.Join(t.Brokers, ", "), err)
	}
	if err := k.open(ctx); err != nil {
		return err
	}
	stop, err := t.Serve(ctx, s.name, k.Topics)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	took, err := k.commands(ctx, c, base)
	if err != nil || !took {
		return err
	}
	return k.letters(ctx, c, base)
}

func (k *kafka) deleteTopics(names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUp)
	defer cancel()
	_, _ = kadm.NewClient(k.client).DeleteTopics(ctx, names...) // they have names that nothing else has
}

// open lets results and dead letters leave.
func (k *kafka) open(ctx context.Context) error {
	for _, gate := range []string{"routes.enabled", "worker.default.enabled"} {
		if err := k.db.GateSet(ctx, gate, true, reason); err != nil {
			return err
		}
	}
	for route, topic := range map[string]string{"results.": k.Results, "dlq.": k.DeadLetters} {
		on := store.Changes{"enabled": true, "dry_run": false, "target_ref": topic}
		if _, err := k.db.RouteSet(ctx, route+k.bundle.Service, on, reason, false); err != nil {
			return err
		}
	}
	return nil
}

var orderingKey = []byte("tidemark command test")

// commands asks, and asks again. false: no result came.
func (k *kafka) commands(ctx context.Context, c bundle.Command, base bundle.Example) (took bool, err error) {
	name, good := k.bundle.Name(c), k.envelope(c, base, "kafka")

	var problems []string
	a, err := k.result(ctx, good)
	switch {
	case err != nil:
		return false, err
	case a == nil:
		problems = append(problems, "no result has come to "+k.Results)
	case a.Status != "processed":
		problems = append(problems, "wanted processed, found "+a.String())
	default:
		problems = resultProblems(c, base, *a)
	}
	if !k.note(name, "a command over Kafka, and its result", problems) {
		return false, nil
	}

	problems = nil
	switch again, err := k.result(ctx, good.again()); {
	case err != nil:
		return false, err
	case again == nil:
		problems = append(problems, "no result has come to "+k.Results)
	case again.Status != "duplicate" || !bytes.Equal(again.Result, a.Result) || again.ProcessedAt != a.ProcessedAt:
		problems = append(problems, fmt.Sprintf("wanted duplicate with the first result, found %s", again))
	}
	k.note(name, "a resend over Kafka", problems)
	return true, nil
}

// letters sends records that are no commands, and one that names another service.
func (k *kafka) letters(ctx context.Context, c bundle.Command, base bundle.Example) error {
	name, good := k.bundle.Name(c), k.envelope(c, base, "kafka, refused")
	for _, trap := range []struct {
		what  string
		value []byte
		want  command.Reason
	}{
		{"a dead letter of what is no JSON", []byte("\x00{" + name), command.EnvelopeInvalid},
		{"another service's topic", good.with("service", k.bundle.Service+"-other").text(), command.IdentityTopicMismatch},
	} {
		letter, err := k.produced(ctx, k.Commands, trap.value, func(r *kgo.Record) bool {
			return r.Topic == k.DeadLetters && bytes.Equal(r.Value, trap.value)
		})
		if err != nil {
			return err
		}
		problems := []string(nil)
		switch {
		case letter == nil:
			problems = append(problems, "it has not come to "+k.DeadLetters)
		case header(letter, "x-dlq-reason") != string(trap.want) || !bytes.Equal(letter.Key, orderingKey):
			problems = append(problems, fmt.Sprintf("wanted %s, found %s with the key %q", trap.want, header(letter, "x-dlq-reason"), letter.Key))
		}
		k.note(name, trap.what, problems)
	}
	return k.unsigned(ctx, name, good)
}

// unsigned sends a record of which no one knows who sent it, so that its dead letter stays in the database.
func (k *kafka) unsigned(ctx context.Context, name string, good envelope) error {
	limited, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	if err := k.client.ProduceSync(ctx, &kgo.Record{Topic: k.Shared, Key: orderingKey, Value: good.text()}).FirstErr(); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for found := false; !found; {
		letters, err := k.db.DeadLetters(ctx, store.LetterFilter{Code: string(command.IdentitySignatureMissing), Limit: 1})
		if err != nil {
			return err
		}
		found = len(letters) > 0
		select {
		case <-tick.C:
		case <-limited.Done():
			k.note(name, sharedTopic, []string{"it did not become a dead letter"})
			return ctx.Err()
		}
	}
	k.note(name, sharedTopic, nil)
	return nil
}

const sharedTopic = "the shared topic without a signature"

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// result sends a command, and returns its result; nil: none has come.
func (k *kafka) result(ctx context.Context, e envelope) (*answer, error) {
	var a answer
	r, err := k.produced(ctx, k.Commands, e.text(), func(r *kgo.Record) bool {
		a = answer{}
		return r.Topic == k.Results && json.Unmarshal(r.Value, &a) == nil && a.EventID == e["event_id"]
	})
	if err != nil || r == nil {
		return nil, err
	}
	return &a, nil
}

// produced sends a record, and waits for the one that answers it; nil: it has not come in time.
func (k *kafka) produced(ctx context.Context, topic string, value []byte, answers func(*kgo.Record) bool) (*kgo.Record, error) {
	if err := k.client.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: orderingKey, Value: value}).FirstErr(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	for limited.Err() == nil {
		fetches := k.client.PollFetches(limited)
		for r := range fetches.RecordsAll() {
			if answers(r) {
				return r, nil
			}
		}
	}
	return nil, ctx.Err()
}
