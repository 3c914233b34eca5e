package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Replay reads records of a topic again, beside the group: up to where the cursors are, which stay.
type Replay struct {
	Client  func(...kgo.Opt) (*kgo.Client, error)
	Topics  []string // as Options.Topics
	Cluster string   // as Options.Cluster
	Topic   string

	Registry *sr.Client // as Options.Registry
	From     int64      // the first offset of each partition
	Since    time.Time  // records of this time or later; zero: all
	Batch    int        // most calls at once
	// Handle takes checked calls in the order of their partition, as tidemark.command_replay_topic does.
	Handle func(ctx context.Context, calls []json.RawMessage) error
}

// BrokerError is an error of Kafka. What it wraps is hidden: a connection that was lost is not the one to the database.
type BrokerError struct{ Err error }

func (e BrokerError) Error() string { return e.Err.Error() }

// Is tells whether the command was interrupted.
func (e BrokerError) Is(target error) bool {
	return target == context.Canceled && errors.Is(e.Err, target)
}

// quiet is for how long no record may come. The last record before a cursor, or one after it, is always there: compaction keeps the
// newest one of a key.
const quiet = 30 * time.Second

// Run returns when all partitions are read.
func (r Replay) Run(ctx context.Context, db *store.DB) error {
	client, err := r.Client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.MetadataMaxAge(metadataAge))
	if err != nil {
		return err
	}
	defer client.Close()
	limited, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if err := client.Ping(limited); err != nil {
		return BrokerError{fmt.Errorf("no broker can be reached: %w", err)}
	}
	topicID, upto, err := r.span(limited, client, db)
	if err != nil {
		return err
	}
	frames := newFrames(r.Registry)
	for ctx.Err() == nil && len(upto) > 0 {
		limited, cancel := context.WithTimeout(ctx, quiet)
		fetches := client.PollFetches(limited)
		cancel()
		var failed error
		if limited.Err() != nil && fetches.Empty() && ctx.Err() == nil {
			failed = fmt.Errorf("no record has come for %v, and %d partitions of %s are not read up to their cursors", quiet, len(upto), r.Topic)
		}
		fetches.EachError(func(_ string, partition int32, err error) {
			if limited.Err() == nil {
				failed = fmt.Errorf("partition %d of %s: %w", partition, r.Topic, err)
			}
		})
		if failed != nil {
			return BrokerError{failed}
		}
		if err := r.handle(ctx, db, topicID, frames, fetches.Records(), upto); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// span lets the client begin with each partition, and returns where each ends: at its cursor. What is behind that comes by itself.
func (r Replay) span(ctx context.Context, client *kgo.Client, db *store.DB) (topicID string, upto map[int32]int64, err error) {
	admin := kadm.NewClient(client)
	details, err := admin.ListTopics(ctx, r.Topic)
	if err == nil {
		err = details[r.Topic].Err
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "", nil, fmt.Errorf("there is no topic %s, or the user of the connection may not see it", r.Topic)
	case err != nil:
		return "", nil, BrokerError{fmt.Errorf("topic %s: %w", r.Topic, err)}
	}
	first, err := admin.ListStartOffsets(ctx, r.Topic)
	if err == nil && !r.Since.IsZero() {
		first, err = admin.ListOffsetsAfterMilli(ctx, r.Since.UnixMilli(), r.Topic)
	}
	if err != nil {
		return "", nil, BrokerError{fmt.Errorf("the offsets of %s are not known: %w", r.Topic, err)}
	}
	cursors, err := db.CommandCursors(ctx, r.Topic)
	if err != nil {
		return "", nil, err
	}
	topicID, upto = details[r.Topic].ID.String(), map[int32]int64{}
	starts := map[int32]kgo.Offset{}
	for _, c := range cursors {
		from, ok := first.Lookup(r.Topic, c.Partition)
		if !ok || from.Err != nil {
			return "", nil, BrokerError{fmt.Errorf("the offsets of partition %d of %s are not known: %w", c.Partition, r.Topic, from.Err)}
		}
		if c.TopicID != topicID {
			return "", nil, fmt.Errorf("%s was deleted and made again: its cursors are of the topic before", r.Topic)
		}
		if begin := max(from.Offset, r.From); begin < c.Next {
			starts[c.Partition], upto[c.Partition] = kgo.NewOffset().At(begin), c.Next
		}
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: starts})
	return topicID, upto, nil
}

// handle checks records and hands them over. A partition that has come to its end is taken out of upto.
func (r Replay) handle(ctx context.Context, db *store.DB, topicID string, frames *frames, records []*kgo.Record, upto map[int32]int64) error {
	var policy policy
	for len(records) > 0 {
		var err error
		policy, err = readPolicy(ctx, db, policy.schemas) // after the records were fetched; a revoked key is refused within a second
		if err != nil {
			return err
		}
		read := reader{topic: r.Topic, topicID: topicID, service: serviceOf(r.Topic, r.Topics), cluster: r.Cluster}
		n := min(r.Batch, len(records))
		var calls []json.RawMessage
		for _, record := range records[:n] {
			end, ok := upto[record.Partition]
			if ok && record.Offset < end && !record.Attrs.IsControl() && !record.Timestamp.Before(r.Since) {
				value, problem, err := frames.now(ctx, record.Value)
				if err != nil {
					return err
				}
				call, _ := read.read(record, value, problem, policy)
				calls = append(calls, call.JSON)
			}
			if record.Offset >= end-1 {
				delete(upto, record.Partition)
			}
		}
		if len(calls) > 0 {
			if err := r.Handle(ctx, calls); err != nil {
				return err
			}
		}
		records = records[n:]
	}
	return nil
}
