package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/testkafka"
)

// The scripts that need Kafka can use, beside those of TestScripts:
//
//	kafka TOPIC...                            starts a broker with the topics; its address is in $KAFKA
//	produce TOPIC KEY VALUE [NAME=VALUE]...   writes a record; KEY, VALUE and headers with Go's escapes, - is none, VALUE may be @FILE
//	consume TOPIC N                           waits for N records of the topic, and prints them from its beginning
func kafkaCommands(start func(testing.TB, []string) string) map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"kafka": func(ts *testscript.TestScript, _ bool, topics []string) {
			ts.Setenv("KAFKA", start(ts.Value("t").(testing.TB), topics))
		},
		"produce": produce, "consume": consume,
	}
}

// The scripts that need Kafka, on Apache Kafka.
//
//nolint:paralleltest // the roles of services are of the whole server: TestScripts runs the same scripts
func TestScriptsOnKafka(t *testing.T) {
	node := testkafka.New(t)
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/command_kafka.txtar"}, RequireUniqueNames: true, Setup: setupScript,
		Cmds: scriptCommands(func(t testing.TB, topics []string) string {
			for _, topic := range topics {
				if err := node.CreateTopic(t.Context(), topic, 1); err != nil {
					t.Fatal(err)
				}
			}
			return node.Address()
		}),
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

func produce(ts *testscript.TestScript, _ bool, args []string) {
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
	client, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv("KAFKA")))
	ts.Check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ts.Check(client.ProduceSync(ctx, record).FirstErr())
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
