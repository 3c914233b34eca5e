package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	sendTime    = 15 * time.Second // to reach the brokers and write a record
	answerEvery = 100 * time.Millisecond
	answerSoon  = 3 * time.Second // an answer that takes longer has a reason that the sender may know
)

const aboutCommandName = `COMMAND is the full name with its version, such as billing.charge.capture/v1; of a command with one version the version may
be left out.`

type sendFlags struct {
	file, key, data, tenant, producer, sign string
	version                                 int
	wait                                    time.Duration
}

func commandSend() cli.Command {
	var f sendFlags
	return cli.Command{
		Use: "send COMMAND", Short: "Send a command to its topic in Kafka, and wait for its result with --wait", Role: "tidemark_executor", Needs: cli.Nothing,
		Long: `Write a command to Kafka, by the section commands of the daemon's configuration: to the topic of the service, or with --sign to
the shared topic. The registry says which version there is, of which schema version the payload is, and who may ask.

With --wait it waits until the record was taken, and prints the result document; a parked command is waited for until it is done.
It asks the database and not the results topic, so it also sees what was run dry, and records that get no result.

` + aboutCommandName + `

Exit status: 0 sent, and with --wait processed now or before; 1 otherwise: refused, failed, or no result in time.`,
		Example: "  tidemark command send billing.charge.capture --key inv-7 --data '{\"invoice\": 7, \"cents\": 1200}' --wait",
		Flags: func(flags *pflag.FlagSet) {
			cli.ConfigFlag(flags, &f.file)
			flags.StringVar(&f.key, "key", "", "the idempotency key, also the key of the record (required)")
			flags.StringVar(&f.data, "data", "", "the payload: a JSON object, or `@FILE` (required)")
			flags.IntVar(&f.version, "version", 0, "version of the command; default: the only one")
			flags.StringVar(&f.tenant, "tenant", "", "for this tenant")
			flags.StringVar(&f.producer, "producer", "", "who asks; default: that of the key of --sign, or the only one on the service's allowlist")
			flags.DurationVar(&f.wait, "wait", 0, "wait for the result, this long")
			flags.Lookup("wait").NoOptDefVal = "10s"
			flags.StringVar(&f.sign, "sign", "", "sign with this key: a `FILE` with a private JWK (Ed25519) and its kid")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			c, err := s.LoadConfig(f.file)
			if err != nil {
				return err
			}
			if err := s.OpenAt(ctx, c); err != nil {
				return err
			}
			return send(ctx, s, c, f)
		},
	}
}

// sent is a command on its way.
type sent struct {
	EventID   string `json:"event_id"`
	Command   string `json:"command"`
	Key       string `json:"idempotency_key"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	service   string
}

func send(ctx context.Context, s *cli.Session, c config.Config, f sendFlags) error {
	if f.key == "" || f.data == "" {
		return cli.Usagef("give --key and --data")
	}
	if err := cli.NeedBrokers(c); err != nil {
		return err
	}
	payload, err := payloadOf(f.data)
	if err != nil {
		return err
	}
	name := s.Arg(0)
	if f.version > 0 {
		name = fmt.Sprintf("%s/v%d", name, f.version)
	}
	registered, err := s.Command(ctx, name)
	if err != nil {
		return err
	}
	var kid string
	var sign func(command.Record) (string, error)
	if f.sign != "" {
		text, err := os.ReadFile(f.sign)
		if err != nil {
			return err
		}
		if kid, sign, err = command.Signer(text); err != nil {
			return fmt.Errorf("%s: %w", f.sign, err)
		}
	}
	if f.producer == "" {
		if f.producer, err = onlyProducer(ctx, s, registered, kid); err != nil {
			return err
		}
	}
	it := sent{
		EventID: command.NewEventID(), Command: registered.Name, Key: f.key, service: registered.Service,
		Topic: cmp.Or(c.Commands.OwnTopic(registered.Service), c.Commands.SharedTopic()),
	}
	if sign != nil {
		it.Topic = cmp.Or(c.Commands.SharedTopic(), it.Topic)
	}
	record := &kgo.Record{Topic: it.Topic, Key: []byte(f.key), Value: envelopeOf(it.EventID, registered, f, payload)}
	if sign != nil {
		signature, err := sign(command.Record{Cluster: c.Commands.ClusterName(), Topic: it.Topic, Key: record.Key, Value: record.Value})
		if err != nil {
			return err
		}
		record.Headers = []kgo.RecordHeader{{Key: command.SignatureHeader, Value: []byte(signature)}}
	}
	after, err := s.CommandMark(ctx)
	if err != nil {
		return err
	}
	if err := produceRecord(ctx, c, record); err != nil {
		return err
	}
	it.Partition, it.Offset = record.Partition, record.Offset
	if f.wait <= 0 {
		return s.Result(it, "command %s: sent to %s, partition %d, offset %d, as %s", it.Command, it.Topic, it.Partition, it.Offset, it.EventID)
	}
	if err = await(ctx, s, it, after, f.wait); err != nil && !asked(err) {
		s.Note("the command was sent, to %s, partition %d, offset %d: tidemark command show %s tells what became of it, or that no daemon has taken it",
			it.Topic, it.Partition, it.Offset, it.EventID)
	}
	return err
}

// asked tells whether an error is about an answer that came, or did not come in time, and not about asking for it.
func asked(err error) bool {
	var answered answerError
	return errors.As(err, &answered)
}

// answerError is what became of a command.
type answerError struct{ error }

func (e answerError) Unwrap() error { return e.error }

func payloadOf(data string) (json.RawMessage, error) {
	text := []byte(data)
	if file, ok := strings.CutPrefix(data, "@"); ok {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, cli.Usagef("--data is not a JSON object")
	}
	return text, nil
}

// onlyProducer returns the producer of the key, or the only one on the allowlist that may ask for the command.
func onlyProducer(ctx context.Context, s *cli.Session, c store.Command, kid string) (string, error) {
	if kid != "" {
		keys, err := s.ProducerKeys(ctx, c.Service)
		if err != nil {
			return "", err
		}
		for _, k := range keys {
			if k.KID == kid {
				return k.Producer, nil
			}
		}
	}
	all, err := s.Producers(ctx, c.Service)
	if err != nil {
		return "", err
	}
	only := ""
	for _, p := range all {
		fits := (p.Command == nil || *p.Command == c.Command) && (p.Version == nil || *p.Version == c.Version)
		switch {
		case fits && only != "" && only != p.Producer:
			return "", cli.Usagef("several producers may ask for %s, such as %s and %s: give --producer", c.Name, only, p.Producer)
		case fits:
			only = p.Producer
		}
	}
	if only == "" {
		return "", cli.Usagef("no producer may ask for %s: give --producer, and have it allowed in the bundle", c.Name)
	}
	return only, nil
}

func envelopeOf(eventID string, c store.Command, f sendFlags, payload json.RawMessage) []byte {
	metadata := map[string]string{"producer": f.producer}
	if f.tenant != "" {
		metadata["tenant"] = f.tenant
	}
	text, err := json.Marshal(map[string]any{
		"event_id": eventID, "service": c.Service, "command": c.Command, "command_version": c.Version, "schema_version": c.SchemaVersion,
		"payload": payload, "idempotency_key": f.key, "occurred_at": time.Now().UTC().Format(time.RFC3339Nano), "trace_id": command.NewTraceID(), "metadata": metadata,
	})
	if err != nil {
		panic(err) // the payload is JSON
	}
	return text
}

func produceRecord(ctx context.Context, c config.Config, record *kgo.Record) error {
	client, err := daemon.KafkaClient(c, c.Commands.Connection)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return cli.Hint(consumer.BrokerError{Err: fmt.Errorf("no broker of the connection %s can be reached: %w", c.Commands.Connection, err)},
			"Nothing was sent. Check connections."+c.Commands.Connection+" of the configuration.")
	}
	if err := client.ProduceSync(ctx, record).FirstErr(); errors.Is(err, kerr.UnknownTopicOrPartition) {
		return cli.Hint(fmt.Errorf("the command was not written: there is no topic %s", record.Topic), "Make it, or correct commands.topics of the configuration: Tidemark makes no topics.")
	} else if err != nil {
		return consumer.BrokerError{Err: fmt.Errorf("the command was not written to the topic %s: %w", record.Topic, err)}
	}
	return nil
}

// await waits until the daemon has taken the record, and its command is done.
func await(ctx context.Context, s *cli.Session, it sent, after store.CommandMark, patience time.Duration) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	soon := time.NewTimer(answerSoon)
	defer soon.Stop()
	tick := time.NewTicker(answerEvery)
	defer tick.Stop()
	for {
		a, err := s.CommandAnswer(ctx, it.service, it.EventID, it.Topic, it.Partition, it.Offset, after)
		if err != nil {
			return err
		}
		if a.Final() {
			return printAnswer(s, it, a)
		}
		select {
		case <-tick.C:
		case <-soon.C:
			if a.Document != nil {
				continue
			}
			why, err := untaken(ctx, s, it)
			if err != nil {
				return err
			}
			if why != "" {
				s.Note("no result after %s, and the command waits in Kafka. %s", answerSoon, why)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			if a.Document != nil {
				return printAnswer(s, it, a)
			}
			return late(ctx, s, it, patience)
		}
	}
}

func late(ctx context.Context, s *cli.Session, it sent, patience time.Duration) error {
	why, err := untaken(ctx, s, it)
	if err != nil {
		return err
	}
	err = answerError{fmt.Errorf("no result after %s: the record, offset %d of partition %d of %s, waits in Kafka", patience, it.Offset, it.Partition, it.Topic)}
	return cli.Hint(err, cmp.Or(why, "tidemark command show "+it.EventID+" shows it when it was taken."))
}

// untaken is why no daemon takes the commands of the service, and what to do; empty: a daemon may.
func untaken(ctx context.Context, s *cli.Session, it sent) (string, error) {
	gate, err := s.ClosedCommand(ctx, it.service)
	if err != nil {
		return "", err
	}
	if gate != "" {
		return "It is taken when the gate is open: tidemark gate open " + gate, nil
	}
	taken, err := s.TakesCommands(ctx)
	return cli.Choose(taken || err != nil, "", "No daemon that takes commands runs for this database: start tidemark run with this "+
		"configuration, and read the first lines of its log."), err
}

func printAnswer(s *cli.Session, it sent, a store.CommandAnswer) error {
	if a.Document == nil {
		err := answerError{fmt.Errorf("the command has no result, only a dead letter: %s", cmp.Or(a.Letter, "its reason has left the tables"))}
		return cli.ExitWith(cli.StatusFailed, cli.Hint(err, "tidemark dead-letter list --source commands"))
	}
	var d struct {
		Status   string          `json:"status"`
		Original string          `json:"original_status"`
		Code     string          `json:"error_code"`
		Message  string          `json:"error_message"`
		Result   json.RawMessage `json:"result"`
		Attempts int             `json:"attempts"`
	}
	if err := json.Unmarshal(a.Document, &d); err != nil {
		return err
	}
	if string(d.Result) == "null" {
		d.Result = nil
	}
	if err := s.Show(a.Document, "command", it.Command, "status", d.Status+cli.Choose(a.DryRun, ", in dry run", ""), "idempotency key", it.Key, "event id", it.EventID,
		"original status", d.Original, "error", d.Code, "message", d.Message, "result", string(d.Result), "attempts", d.Attempts); err != nil {
		return err
	}
	if d.Status == "processed" || d.Status == "duplicate" && d.Original == "processed" {
		return nil
	}
	text := "the command is " + d.Status
	for _, more := range []string{d.Code, d.Message} {
		if more != "" {
			text += ": " + more
		}
	}
	return cli.ExitWith(cli.StatusFailed, answerError{errors.New(text)})
}
