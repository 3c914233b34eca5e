package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tidemarkhq/tidemark/internal/testkafka"
)

// The scripts that need Kafka can use, beside those of TestScripts:
//
//	kafka TOPIC...                            starts a broker with the topics; its address is in $KAFKA
//	securekafka TOPIC...                      starts a broker with ACLs, which only $KAFKA_USER=admin may see and change;
//	                                          the other users are shop and forger, and have passwords like their names
//	produce TOPIC KEY VALUE [NAME=VALUE]...   writes a record; KEY, VALUE and headers with Go's escapes, - is none, VALUE may be @FILE
//	consume TOPIC N                           waits for N records of the topic, and prints them from its beginning
func kafkaCommands(start, secure func(testing.TB, []string) string) map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"kafka": func(ts *testscript.TestScript, _ bool, topics []string) {
			ts.Setenv("KAFKA", start(ts.Value("t").(testing.TB), topics))
		},
		"securekafka": func(ts *testscript.TestScript, _ bool, topics []string) {
			ts.Setenv("KAFKA", secure(ts.Value("t").(testing.TB), topics))
		},
		"produce": produce, "consume": consume,
	}
}

// The scripts that need Kafka, on Apache Kafka. Not beside TestScripts, which runs them too: roles of services are of the whole
// server.
func TestScriptsOnKafka(t *testing.T) {
	with := func(node *testkafka.Node, topics []string) string {
		for _, topic := range topics {
			if err := node.CreateTopic(t.Context(), topic, 1); err != nil {
				t.Fatal(err)
			}
		}
		return node.Address()
	}
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/command_kafka.txtar", "testdata/command_acl.txtar"}, RequireUniqueNames: true, Setup: setupScript,
		Cmds: scriptCommands(
			func(t testing.TB, topics []string) string { return with(testkafka.New(t), topics) },
			func(t testing.TB, topics []string) string { return with(testkafka.NewSecure(t, kafkaUsers...), topics) }),
	})
}

func fakeKafka(t testing.TB, topics []string) string {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

// kafkaUsers have passwords like their names; the first may do everything.
var kafkaUsers = []string{"admin", "shop", "forger"}

func secureFakeKafka(t testing.TB, topics []string) string {
	const method = "SCRAM-SHA-256"
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topics...), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser(method, kafkaUsers[0], kafkaUsers[0]), kfake.User(method, "shop", "shop"), kfake.User(method, "forger", "forger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

func produce(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: produce topic key value [name=value]...")
	}
	record := &kgo.Record{Topic: args[0], Key: bytesOf(ts, args[1]), Value: bytesOf(ts, args[2])}
	if file, ok := strings.CutPrefix(args[2], "@"); ok {
		record.Value = []byte(ts.ReadFile(file))
	}
	for _, h := range args[3:] {
		name, value, _ := strings.Cut(h, "=")
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: name, Value: bytesOf(ts, value)})
	}
	options := []kgo.Opt{kgo.SeedBrokers(ts.Getenv("KAFKA"))}
	if user := ts.Getenv("KAFKA_USER"); user != "" {
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: user}.AsSha256Mechanism()))
	}
	client, err := kgo.NewClient(options...)
	ts.Check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = client.ProduceSync(ctx, record).FirstErr()
	for !neg && errors.Is(err, kerr.TopicAuthorizationFailed) && ctx.Err() == nil { // a broker learns of an ACL after it was made
		err = client.ProduceSync(ctx, record).FirstErr()
	}
	if neg != errors.Is(err, kerr.TopicAuthorizationFailed) {
		ts.Fatalf("%v", err)
	} else if !neg {
		ts.Check(err)
	}
}

func bytesOf(ts *testscript.TestScript, text string) []byte {
	if text == "-" {
		return nil
	}
	got, err := strconv.Unquote(`"` + text + `"`)
	if err != nil && !strings.HasPrefix(text, "@") {
		ts.Fatalf("%s: %v", text, err)
	}
	return []byte(got)
}

func consume(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: consume topic n")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	client, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv("KAFKA")), kgo.ConsumeTopics(args[0]), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ts.Check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all []*kgo.Record
	for len(all) < want {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			ts.Fatalf("%s has %d records, want %d: %v", args[0], len(all), want, fetches.Err())
		}
		all = append(all, fetches.Records()...)
	}
	for _, r := range all {
		line := shown(r.Key) + " " + shown(r.Value)
		for _, h := range r.Headers {
			line += " " + h.Key + "=" + shown(h.Value)
		}
		fmt.Fprintln(ts.Stdout(), line)
	}
	if len(all) != want {
		ts.Fatalf("%s has %d records, want %d", args[0], len(all), want)
	}
}

// shown is what a record has, with Go's escapes; - is nothing.
func shown(b []byte) string {
	if b == nil {
		return "-"
	}
	return strings.ReplaceAll(strings.Trim(strconv.QuoteToASCII(string(b)), `"`), `\"`, `"`)
}
