// Command go asks the service billing for the command charge.capture, over Kafka, and prints the result:
//
//	go run . inv-7 '{"invoice": 7, "customer": "ada", "cents": 1200}'
//
// See ../README.md for the environment variables.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	patience = 30 * time.Second
	results  = "db-results.billing"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return errors.New("usage: go run . KEY PAYLOAD")
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("no result in time: send it again, with the same key"))
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA"), ",")...))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := readFromEnd(ctx, client); err != nil {
		return err
	}
	record, eventID, err := command(os.Args[1], json.RawMessage(os.Args[2]))
	if err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return err
	}
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, r := range fetches.Records() {
			var result struct {
				EventID        string `json:"event_id"`
				Status         string `json:"status"`
				OriginalStatus string `json:"original_status"`
			}
			if err := json.Unmarshal(r.Value, &result); err != nil || result.EventID != eventID {
				continue // of another command
			}
			fmt.Println(string(r.Value))
			switch {
			case result.Status == "failed_retryable" || result.OriginalStatus == "failed_retryable":
				continue // it is tried again: another result follows
			case result.Status == "processed" || result.OriginalStatus == "processed":
				return nil
			}
			return errors.New(result.Status)
		}
	}
}

// readFromEnd begins to read the results before the command is sent, so that its result is among them.
func readFromEnd(ctx context.Context, client *kgo.Client) error {
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, results)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return err
	}
	client.AddConsumePartitions(ends.KOffsets())
	return nil
}

func command(key string, payload json.RawMessage) (r *kgo.Record, eventID string, err error) {
	eventID = uuid()
	envelope, err := json.Marshal(map[string]any{
		"event_id": eventID, "service": "billing", "command": "charge.capture", "command_version": 1, "schema_version": 1,
		"payload": payload, "idempotency_key": key, "occurred_at": time.Now().UTC().Format(time.RFC3339Nano),
		"trace_id": strings.ReplaceAll(uuid(), "-", ""), "metadata": map[string]string{"producer": "shop"},
	})
	if err != nil {
		return nil, "", err
	}
	r = &kgo.Record{Topic: "db-events.billing", Key: []byte(key), Value: envelope}
	if file := os.Getenv("SIGNING_KEY"); file != "" {
		r.Topic = "db-events" // shared: the signature tells who asks
		signature, err := sign(file, os.Getenv("CLUSTER"), r)
		if err != nil {
			return nil, "", err
		}
		r.Headers = []kgo.RecordHeader{{Key: "tidemark-signature", Value: []byte(signature)}}
	}
	return r, eventID, nil
}

// sign makes a detached JWS with the private JWK in the file.
func sign(file, cluster string, r *kgo.Record) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var jwk struct{ Kid, D string }
	if err := json.Unmarshal(text, &jwk); err != nil {
		return "", err
	}
	seed, err := base64.RawURLEncoding.DecodeString(jwk.D)
	if err != nil || len(seed) != ed25519.SeedSize {
		return "", fmt.Errorf("%s: d is not the private part of an Ed25519 key", file)
	}
	var covered []byte
	for _, part := range [][]byte{[]byte("tidemark-command-v1"), []byte(cluster), []byte(r.Topic), r.Key, r.Value} {
		covered = binary.BigEndian.AppendUint32(covered, uint32(len(part))) //nolint:gosec // a record has less than 2 GiB
		covered = append(covered, part...)
	}
	header, err := json.Marshal(map[string]string{"alg": "EdDSA", "kid": jwk.Kid})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode(header) + "." + encode(covered)
	return encode(header) + ".." + encode(ed25519.Sign(ed25519.NewKeyFromSeed(seed), []byte(signed))), nil
}

func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
