package consumer_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/command"
)

// CM9: behind a closed gate the records stay in Kafka and the offset is held; opened, it goes on. A closed master gate, and a copy
// that is not armed, leave the group.
func TestConsumerGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	members := func() string {
		groups, err := kadm.NewClient(w.client).DescribeGroups(context.Background(), "tidemark")
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(len(groups["tidemark"].Members))
	}
	wait := func(want string) {
		t.Helper()
		until(t, "members of the group: "+want, func() bool { return members() == want })
	}
	w.exec(`select tidemark.gate_set('commands.' || $1 || '.enabled', false)`, w.service)
	w.send(0, w.make("a", 1), w.make("b", 2))
	w.run()
	w.eventually(`select coalesce(last_run_summary ->> 'status', '') from tidemark.worker_cursor where source = 'kafka:`+w.topic+`'`, "waiting")
	wait("1")
	w.eventually(offsets)
	w.exec(`select tidemark.gate_set('commands.' || $1 || '.enabled', true)`, w.service)
	w.eventually(made, "1", "2")

	for _, off := range []string{`select tidemark.gate_set('commands.enabled', $1)`, `select tidemark.stage_set(case when $1 then 'live' else 'dry_run' end, 'test')`} {
		w.exec(off, false)
		wait("0")
		w.send(0, w.make("c"+off[16:20], 3))
		w.exec(off, true)
		w.eventually(`select (max(watermark_id::bigint) >= 3)::text from tidemark.worker_cursor where source = 'kafka:`+w.topic+`'`, "true")
	}
	w.eventually(made, "1", "2", "3")
	w.eventually(offsets, "kafka:"+w.topic+"/0 4")
}

// addKey registers a new key of the producer.
func (w *world) addKey(kid string) ed25519.PrivateKey {
	w.t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`select tidemark.producer_key_add($1, $2, 'shop', jsonb_build_object('kty', 'OKP', 'crv', 'Ed25519', 'x', $3::text), valid_from => '2020-01-01')`,
		kid, w.service, base64.RawURLEncoding.EncodeToString(public))
	return private
}

// sign makes a record one of the shared topic.
func (w *world) sign(r *kgo.Record, cluster, kid string, private ed25519.PrivateKey) *kgo.Record {
	w.t.Helper()
	r.Topic = "db-events"
	signature, err := command.Sign(command.Record{Cluster: cluster, Topic: r.Topic, Key: r.Key, Value: r.Value}, kid, private)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Headers = []kgo.RecordHeader{{Key: command.SignatureHeader, Value: []byte(signature)}}
	return r
}

// SE1: on a shared topic the signature is the identity; on the service's own topic the topic is.
func TestConsumerIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	private := w.addKey("k1")
	signed := func(key string, id int, cluster string) *kgo.Record {
		return w.sign(w.make(key, id), cluster, "k1", private)
	}
	unsigned := w.make("b", 2)
	unsigned.Topic = "db-events"
	twice := signed("d", 4, "test")
	twice.Headers = append(twice.Headers, twice.Headers[0])
	w.run()
	w.send(0, signed("a", 1, "test"), unsigned, signed("c", 3, "elsewhere"), twice)
	w.eventually(offsets, "kafka:db-events/0 4")
	w.exec(`select tidemark.producer_key_revoke('k1', 'stolen')`)
	// The key is refused within a second.
	until(t, "the key is refused", func() bool {
		w.send(0, signed(fmt.Sprint("r", w.n), 100+w.n, "test"))
		return strings.Contains(strings.Join(w.rows(`select error_code from tidemark.dead_letter`), " "), "key_revoked")
	})
	w.eventually(`select idempotency_key || ' ' || via from tidemark.command_claim where idempotency_key not like 'r%'`, "a jws")
	w.eventually(`select distinct error_code from tidemark.dead_letter order by 1`, "identity.key_revoked", "identity.signature_invalid", "identity.signature_missing")
	w.exec(`select tidemark.gate_set('commands.enabled', true); update tidemark.setting set value = 'claimed' where key = 'commands.shared_topic'`)
	until(t, "claimed", func() bool {
		again := w.make(fmt.Sprint("x", w.n), 1000+w.n)
		again.Topic = "db-events"
		w.send(0, again)
		return len(w.rows(`select via from tidemark.command_claim where via = 'claimed'`)) > 0
	})
}

// SE1: a key counts for each record that is sent after it was added, also amid those of a forger.
func TestConsumerNewKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.run()
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 5
	var want []string
	for n := range rounds {
		kid := fmt.Sprint("k", n)
		private := w.addKey(kid)
		var all []*kgo.Record
		for range 10 {
			all = append(all, w.sign(w.make(fmt.Sprint("x", w.n), 1000+w.n), "test", fmt.Sprint("x", w.n), stranger))
		}
		w.send(0, append(all, w.sign(w.make(kid, n), "test", kid, private))...)
		want = append(want, fmt.Sprint(n))
		w.eventually(offsets, fmt.Sprint("kafka:db-events/0 ", 11*(n+1)))
		w.eventually(made, want...)
	}
	w.eventually(`select error_code || ' ' || count(*) from tidemark.dead_letter group by error_code`, fmt.Sprint("identity.key_unknown ", 10*rounds))
}

// CM7: a topic that was deleted and made again is held, until an operator says from where to go on.
func TestConsumerRecreated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.run()
	w.send(0, w.make("a", 1), w.make("b", 2))
	w.eventually(made, "1", "2")
	admin := kadm.NewClient(w.client)
	if _, err := admin.DeleteTopics(t.Context(), w.topic); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopics(t.Context(), 1, 1, nil, w.topic); err != nil {
		t.Fatal(err)
	}
	other := *w
	other.connect(w.seeds)
	other.send(0, other.make("c", 3), other.make("d", 4), other.make("e", 5))
	w.eventually(`select kind || ' ' || subject from tidemark.finding where closed_at is null and kind = 'command_partition_held'`, "command_partition_held commands/kafka:"+w.topic+"/0")
	w.eventually(made, "1", "2")
	w.exec(`select tidemark.command_seek($1, 0, 0, 'it was made again')`, w.topic)
	w.eventually(made, "1", "2", "3", "4", "5")
	w.eventually(`select kind from tidemark.finding where closed_at is null and kind = 'command_partition_held'`)
}
