package consumer_test

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CM7: another leader of a partition does not have the end of what was read, but new records at these offsets. The partition is held, also by
// the consumers that come next, until an operator says where to go on.
func TestConsumerOfALeaderWithoutTheEnd(t *testing.T) {
	t.Parallel()
	w := newService(t)
	cluster := w.brokers(2, 1, w.topic)
	w.send(0, w.make("a", 1), w.make("b", 2), w.make("c", 3))
	stop, _ := w.run()
	w.eventually(made, "1", "2", "3")
	cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		answer := asked.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = w.topic
		partition := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		partition.LeaderEpoch, partition.EndOffset = 0, 1
		topic.Partitions = append(topic.Partitions, partition)
		answer.Topics = append(answer.Topics, topic)
		return answer, nil, true
	})
	if err := cluster.MoveTopicPartition(w.topic, 0, 1-cluster.LeaderFor(w.topic, 0)); err != nil {
		t.Fatal(err)
	}
	w.send(0, w.make("d", 4))
	held := `select detail from tidemark.finding where kind = 'command_partition_held' and closed_at is null`
	w.eventually(held, "the next offset is 3, and Kafka has lost the records from 1 on that were read: others may have their offsets now")
	stop()
	w.run()
	w.eventually(`select (count > 1)::text from tidemark.finding where kind = 'command_partition_held'`, "true")
	w.eventually(made, "1", "2", "3")
	w.exec(`select tidemark.command_seek($1, 0, 1, 'what came after them is read')`, w.topic)
	w.eventually(made, "1", "2", "3", "4")
	w.eventually(held)
	w.eventually(offsets, "kafka:"+w.topic+"/0 4")
}

// CM7: the leader changes so after a partition could not be fetched for a while, and was asked for anew from where it was read to.
func TestConsumerOfALeaderWithoutTheEndAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]bool{"the client asks": true, "what the client asks is taken back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newService(t)
			cluster := w.brokers(2, 1, w.topic)
			w.send(0, w.make("a", 1), w.make("b", 2), w.make("c", 3))
			w.run()
			w.eventually(made, "1", "2", "3")
			broken := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: w.topic, Count: -1, Err: kerr.TopicAuthorizationFailed})
			w.wantTrouble(kerr.TopicAuthorizationFailed.Message)
			hits := broken.Hits()
			until(t, "it is asked for again", func() bool { return broken.Hits() >= hits+2 })
			cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(asked kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				answer := asked.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
				topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
				topic.Topic = w.topic
				partition := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				partition.LeaderEpoch, partition.EndOffset = 0, 1
				if byClient := asked.(*kmsg.OffsetForLeaderEpochRequest).Topics[0].Partitions[0].CurrentLeaderEpoch >= 0; byClient != asks {
					partition = kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
					partition.ErrorCode = kerr.NotLeaderForPartition.Code
				}
				topic.Partitions = append(topic.Partitions, partition)
				answer.Topics = append(answer.Topics, topic)
				return answer, nil, true
			})
			if err := cluster.MoveTopicPartition(w.topic, 0, 1-cluster.LeaderFor(w.topic, 0)); err != nil {
				t.Fatal(err)
			}
			broken.Remove()
			w.send(0, w.make("d", 4))
			w.eventually(`select detail from tidemark.finding where kind = 'command_partition_held' and closed_at is null`,
				"the next offset is 3, and Kafka has lost the records from 1 on that were read: others may have their offsets now")
			w.eventually(made, "1", "2", "3")
		})
	}
}

// CM7: a cursor that was past the end before Kafka was asked for it is held, also when others are at these offsets; not one that has gone past it
// meanwhile.
func TestConsumerOfAPartitionThatEndsBefore(t *testing.T) {
	t.Parallel()
	w := newService(t)
	cluster := w.brokers(1, 1, w.topic)
	w.send(0, w.make("a", 1))
	stop, _ := w.run()
	w.eventually(made, "1")
	w.eventually(offsets, "kafka:"+w.topic+"/0 1")
	stop()
	at := func(next string) {
		if _, err := w.db.Pool.Exec(t.Context(), `update tidemark.worker_cursor set watermark_id = $1, decided_through = $1 where source = $2`, next, "kafka:"+w.topic); err != nil {
			t.Error(err)
		}
	}
	var once sync.Once
	cluster.ControlKey(int16(kmsg.ListOffsets), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if asked.(*kmsg.ListOffsetsRequest).Topics[0].Partitions[0].Timestamp == -1 { // the end
			once.Do(func() { at("3") })
		}
		return nil, nil, false
	})
	held := `select detail from tidemark.finding where kind = 'command_partition_held' and closed_at is null`
	stop, _ = w.run()
	w.eventually(held, "the next offset is 3, and the partition has 0 to 1: records are lost, or the topic is another")
	w.send(0, w.make("b", 2), w.make("c", 3), w.make("d", 4))
	w.eventually(made, "1", "4")
	w.eventually(held)
	w.eventually(offsets, "kafka:"+w.topic+"/0 4")
	stop()

	at("6")
	w.run()
	w.eventually(held, "the next offset is 6, and the partition has 0 to 4: records are lost, or the topic is another")
	w.send(0, w.make("e", 5), w.make("f", 6), w.make("g", 7))
	w.eventually(held, "the next offset is 6, and Kafka has lost the records from 4 on that were read: others may have their offsets now")
}
