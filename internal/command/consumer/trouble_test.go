package consumer_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// wantTrouble waits for the finding about what keeps the consumer from reading.
func (w *world) wantTrouble(text string) {
	w.t.Helper()
	got := ""
	until(w.t, "the finding: "+text, func() bool {
		got = strings.Join(w.rows(`select detail from tidemark.finding where kind = 'worker_failing' and subject = 'commands' and closed_at is null`), "|")
		return strings.Contains(got, text)
	})
	if !strings.HasPrefix(got, "worker commands: it cannot read commands from Kafka: ") || strings.Contains(got, "\n") {
		w.t.Error(got)
	}
}

func (w *world) wantNoTrouble() {
	w.t.Helper()
	w.eventually(`select kind from tidemark.finding where kind = 'worker_failing' and closed_at is null`)
}

// LI6, CM7: no broker answers, at the start and later: a finding says which, nothing is lost, and it ends by itself.
func TestConsumerWithoutBrokers(t *testing.T) {
	t.Parallel()
	w := newService(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.seeds = []string{l.Addr().String()}
	_ = l.Close()
	w.run()
	w.wantTrouble("no broker answers: ")
	_, text, _ := net.SplitHostPort(w.seeds[0])
	port, _ := strconv.Atoi(text)
	data := t.TempDir()
	start := func() *kfake.Cluster {
		t.Helper()
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(data), kfake.SeedTopics(1, w.topic))
		if err != nil {
			t.Fatal(err)
		}
		return cluster
	}
	cluster := start()
	w.connect(w.seeds)
	w.send(0, w.make("a", 1))
	w.eventually(made, "1")
	w.wantNoTrouble()
	cluster.Close()
	w.wantTrouble("no broker answers: ")
	t.Cleanup(start().Close)
	w.connect(w.seeds)
	w.send(0, w.make("b", 2))
	w.eventually(made, "1", "2")
	w.wantNoTrouble()
}

// LI6: a group that another application uses, with another protocol or the same: the finding says what to name instead.
func TestConsumerInAForeignGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		balancer kgo.GroupBalancer
		want     string
	}{
		"another protocol": {kgo.RangeBalancer(), "the group tidemark is another application's: "},
		"the same":         {kgo.CooperativeStickyBalancer(), "the group tidemark has members of another application (client id foreign), "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			foreign, err := kgo.NewClient(kgo.SeedBrokers(w.seeds...), kgo.ClientID("foreign"), kgo.ConsumerGroup("tidemark"), kgo.ConsumeTopics(w.topic), kgo.Balancers(c.balancer))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(foreign.Close)
			until(t, "it has joined", func() bool {
				groups, err := kadm.NewClient(w.client).DescribeGroups(t.Context(), "tidemark")
				return err == nil && groups["tidemark"].State == "Stable" && len(groups["tidemark"].Members) == 1
			})
			w.run()
			w.wantTrouble(c.want)
			w.wantTrouble("name one of Tidemark's own in commands.group")
			foreign.Close()
			w.send(0, w.make("a", 1))
			w.send(1, w.make("b", 2))
			w.eventually(`select id::text from app.effect order by id`, "1", "2")
			w.wantNoTrouble()
		})
	}
}

// LI6: the brokers forbid the group, or the topic: the finding names the command that says what is missing.
func TestConsumerForbidden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault kfake.Fault
		want  string
	}{
		"group": {kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.GroupAuthorizationFailed, Count: -1}, "the group tidemark: GROUP_AUTHORIZATION_FAILED"},
		"topic": {kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1}, "TOPIC_AUTHORIZATION_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newService(t)
			cluster := w.brokers(1, 1, w.topic)
			forbidden := cluster.Fault(c.fault)
			w.send(0, w.make("a", 1))
			w.run()
			w.wantTrouble(c.want)
			w.wantTrouble("tidemark command acl check SERVICE says what is missing")
			w.eventually(made)
			forbidden.Remove()
			w.eventually(made, "1")
			w.wantNoTrouble()
		})
	}
}

// LI6, CM7: what is wrong with a partition keeps none of the others from being read, whatever it is. The finding names it, and it goes on
// when it can be read, with all that it has.
func TestConsumerWithABadPartition(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]kfake.Fault{
		"forbidden to fetch":  {Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed},
		"forbidden to look":   {Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.TopicAuthorizationFailed},
		"without a leader":    {Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.NotLeaderForPartition},
		"a partition of both": {Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.UnknownServerError, Partitions: []int32{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newService(t)
			cluster := w.brokers(1, 2, w.topic, "other."+w.service)
			fault.Topic, fault.Count = w.topic, -1
			bad := int32(1)
			broken := cluster.Fault(fault)
			n := 0
			good := func() {
				t.Helper()
				n++
				r := w.make(fmt.Sprint("good", n), n)
				r.Topic = "other." + w.service
				w.send(0, r)
				w.eventually(`select coalesce(max(id), 0)::text from app.effect where id < 100`, strconv.Itoa(n))
			}
			w.send(bad, w.make("a", 101), w.make("b", 102))
			w.runWith(func(o *consumer.Options) { o.Topics = []string{"db-events.*", "other.*"} })
			good()
			first := "partition 0 of " + w.topic + ", and 1 more: "
			if fault.Partitions != nil {
				first = "partition 1 of " + w.topic + ": "
			}
			w.wantTrouble(first)
			w.wantTrouble(fault.Err.Message)
			members := func() string {
				t.Helper()
				groups, err := kadm.NewClient(w.client).DescribeGroups(t.Context(), "tidemark")
				if err != nil || len(groups["tidemark"].Members) != 1 {
					t.Fatalf("%+v %v", groups, err)
				}
				return groups["tidemark"].Members[0].MemberID
			}
			was := members()
			good()
			w.send(bad, w.make("c", 103))
			good()
			if is := members(); is != was {
				t.Errorf("it was %s, and left the group: %s", was, is)
			}
			w.eventually(`select id::text from app.effect where id > 100`)
			broken.Remove()
			w.send(1-bad, w.make("d", 200))
			w.eventually(`select id::text from app.effect where id between 101 and 199 order by n`, "101", "102", "103")
			w.eventually(`select id::text from app.effect where id = 200`, "200")
			w.wantNoTrouble()
			good()
			w.send(bad, w.make("e", 104))
			w.eventually(`select id::text from app.effect where id between 101 and 199 order by n`, "101", "102", "103", "104")
			if is := members(); is != was {
				t.Errorf("it was %s, and left the group when the partition was well again: %s", was, is)
			}
		})
	}
}

// LI6: brokers have an error for a topic as a whole when they are asked about it, while its partitions can be read. The finding names the topic,
// and closes when the error is gone.
func TestConsumerWithABadTopic(t *testing.T) {
	t.Parallel()
	w := newService(t)
	cluster := w.brokers(1, 1, w.topic)
	w.send(0, w.make("a", 1))
	w.run()
	w.eventually(made, "1")
	var broken atomic.Bool
	broken.Store(true)
	host, text, _ := net.SplitHostPort(w.seeds[0])
	port, _ := strconv.Atoi(text)
	cluster.ControlKey(int16(kmsg.Metadata), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if asked.(*kmsg.MetadataRequest).Topics != nil || !broken.Load() {
			return nil, nil, false
		}
		answer := asked.ResponseKind().(*kmsg.MetadataResponse)
		answer.Brokers = []kmsg.MetadataResponseBroker{{Host: host, Port: int32(port)}}
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.ErrorCode = &w.topic, kerr.UnknownServerError.Code
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	w.wantTrouble("topic " + w.topic + ": UNKNOWN_SERVER_ERROR")
	w.send(0, w.make("b", 2))
	w.eventually(made, "1", "2")
	broken.Store(false)
	w.wantNoTrouble()
	w.send(0, w.make("c", 3))
	w.eventually(made, "1", "2", "3")
}

// CM2: a schema that no checker can compile lets no payload pass, and a topic that is missing or keeps records for too long is told.
func TestConsumerSetup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"payload_schema": {"type": "object", "properties": {"mail": {"type": "string", "pattern": "("}}}}')`, w.service)
	admin := kadm.NewClient(w.client)
	if _, err := admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "retention.ms", Value: kmsg.StringPtr("-1")}}, w.topic); err != nil {
		t.Fatal(err)
	}
	w.exec(`select * from tidemark.command_partition('db-events.gone', 0, 'T', 0, 0)`) // of a service that was deleted
	w.exec(`select * from tidemark.command_partition('db-gone', 0, 'T', 0, 0)`)
	w.send(0, w.make("a", 1))
	w.runWith(func(o *consumer.Options) { o.Topics = append(o.Topics, "db-gone") })
	w.eventually(results, "rejected contract.payload_invalid a")
	w.eventually(`select (payload ->> 'error_message' like 'payload cannot be checked: the schema of the command does not compile: %')::text from tidemark.outbox where type like 'result.%'`, "true")
	w.eventually(made)
	w.eventually(`select split_part(subject || ': ' || detail, ', ', 1) from tidemark.finding where kind = 'command_setup' and closed_at is null order by replace(subject, '`+w.service+`', 'x') collate "C"`,
		fmt.Sprintf("db-events.%s: the topic keeps records without end", w.service), "db-gone: the topic was read", w.service+".make/v1: its schema of payloads does not compile")
}

// A topic that the configuration names, and that is not there, is told; the shared one of a prefix is not, which the default names too.
func TestConsumerMissesANamedTopic(t *testing.T) {
	t.Parallel()
	const told = "db-evnets: commands.topics names the topic, and it does not exist, or the daemon may not read it"
	for name, c := range map[string]struct {
		topics, want []string
	}{
		"named":                {[]string{"db-events", "db-evnets"}, []string{told}},
		"beside a prefix":      {[]string{"db-events.*", "db-evnets"}, []string{told}},
		"shared by the prefix": {[]string{"db-events.*", "db-none.*", "db-none"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.exec(`select tidemark.finding_open('command_setup', 'x', 'warning', 'before the look')`)
			w.runWith(func(o *consumer.Options) { o.Topics = c.topics })
			w.eventually(`select subject || ': ' || detail from tidemark.finding where kind = 'command_setup' and closed_at is null and detail not like 'the topic keeps %'`, c.want...)
		})
	}
}

// What keeps the consumer from looking at its topics is told once.
func TestConsumerTellsWhyItDoesNotLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`alter function tidemark.command_setup(jsonb, jsonb) rename to command_setup_away;
		create sequence app.looked;
		create function tidemark.command_setup(topics jsonb, uncompiled jsonb) returns void language plpgsql as $$
		begin perform nextval('app.looked'); raise 'it cannot be'; end $$`)
	var log logged
	w.runWith(func(o *consumer.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w.eventually(`select (last_value >= 3)::text from app.looked`, "true")
	if n := strings.Count(log.String(), `msg="cannot look how topics are set up" error="ERROR: it cannot be`); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}

// A consumer without topics and schemas looks too.
func TestCommandSetupOfNothing(t *testing.T) {
	t.Parallel()
	w := newService(t)
	w.exec(`select tidemark.finding_open('command_setup', 'x', 'warning', 'it is gone')`)
	if err := store.New(w.db.Pool).CommandSetup(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	w.eventually(`select subject from tidemark.finding where kind = 'command_setup' and closed_at is null`)
}

// A finding that cannot be written holds up for a while alone what asks for gates and keys.
func TestConsumerAsksOnBesideALockedFinding(t *testing.T) {
	t.Parallel()
	w := newService(t)
	w.seeds = []string{"127.0.0.1:1"}
	tx, err := w.db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `lock table tidemark.finding`); err != nil {
		t.Fatal(err)
	}
	stop, _ := w.run()
	told := map[string]bool{}
	until(t, "it tells the finding a second time", func() bool {
		for _, began := range w.rows(`select query_start::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%worker_finding%'`) {
			told[began] = true
		}
		return len(told) > 1
	})
	_ = tx.Rollback(context.Background())
	stop()
}

// A daemon that stops while the group waits for a member that does not join does not wait for it.
func TestConsumerStopsAmidARebalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	foreign := kmsg.NewPtrJoinGroupRequest()
	foreign.Group, foreign.ProtocolType, foreign.SessionTimeoutMillis, foreign.RebalanceTimeoutMillis = "tidemark", "consumer", 60000, 60000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	metadata := kmsg.NewConsumerMemberMetadata()
	protocol.Name, protocol.Metadata = "cooperative-sticky", metadata.AppendTo(nil)
	foreign.Protocols = append(foreign.Protocols, protocol)
	for range 2 { // the first answer names the member
		answer, err := foreign.RequestWith(t.Context(), w.client)
		if err != nil {
			t.Fatal(err)
		}
		foreign.MemberID = answer.MemberID
	}
	stop, _ := w.run()
	until(t, "it joins", func() bool {
		groups, err := kadm.NewClient(w.client).DescribeGroups(t.Context(), "tidemark")
		return err == nil && groups["tidemark"].State == "PreparingRebalance" && len(groups["tidemark"].Members) == 2
	})
	began := time.Now()
	stop()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v to stop", took)
	}
}

// logged is what was logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
