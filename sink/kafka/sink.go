package kafka

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemarkhq/tidemark/sink"
)

// Sink delivers to one topic. The key of an event is the key of its record and selects the
// partition as in Kafka's own clients. A record without key goes to a partition with few waiting.
type Sink struct {
	connection *Connection
	topic      string
	format     sink.Format
	close      func()
}

var _ sink.Sink = (*Sink)(nil)

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// Sink returns a sink that delivers to the topic, in a format of package sink, or as [Payload] or [Raw]. It shares the connection; its
// Close leaves the connection open.
func (c *Connection) Sink(topic string, format sink.Format) (*Sink, error) {
	format, err := parseFormat(format)
	if err != nil {
		return nil, err
	}
	if !topicName.MatchString(topic) || topic == "." || topic == ".." {
		return nil, fmt.Errorf("topic %q must be 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-'", topic)
	}
	c.opens(topic, 1)
	return &Sink{connection: c, topic: topic, format: format, close: sync.OnceFunc(func() { c.opens(topic, -1) })}, nil
}

// Limits is part of [sink.Sink].
func (s *Sink) Limits() sink.Limits { return sink.Limits{Batch: 2000, KeepsOrder: true} }

// Close is part of [sink.Sink].
func (s *Sink) Close() error {
	s.close()
	return nil
}

// Deliver is part of [sink.Sink].
func (s *Sink) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	ctx, cancel := context.WithTimeout(ctx, s.connection.timeout)
	defer cancel()

	memory := scratches.Get().(*scratch)
	records := memory.records(s, batch, results)
	p, err := s.connection.acquire(ctx)
	if err != nil {
		giveBack(records, results, notSent(ctx, err))
		return results
	}
	healthy, gaveUp := deliver(ctx, p, records, results)
	s.connection.release(p, healthy)
	if !gaveUp {
		memory.clear()
		scratches.Put(memory)
	}
	return results
}

// deliver sends the records in rounds. If the broker refuses a batch of records because of one of
// them, deliver sends the batch again in halves, in order, until that record is alone.
func deliver(ctx context.Context, p *producer, records []*record, results []sink.Result) (healthy, gaveUp bool) {
	healthy = true
	held := map[int32]sink.Result{} // by partition: the result of a record that failed there
	for groups := [][]*record{records}; len(groups) > 0; {
		group := pass(groups[0], held, results)
		groups = groups[1:]
		if len(group) == 0 {
			continue
		}
		left, err := p.send(ctx, group)
		var refused []*record
		for _, a := range group {
			switch {
			case !a.answered && left:
				results[a.position] = unanswered(ctx, err)
			case !a.answered:
				results[a.position] = notSent(ctx, err)
			case a.err == nil:
				results[a.position] = sink.Result{Status: sink.Delivered}
			case isRefusal(a.err):
				refused = append(refused, a)
			default:
				results[a.position] = failed(a.err)
				if results[a.position].Status != sink.Permanent {
					held[a.kafka.Partition], healthy = results[a.position], false
				}
			}
		}
		if err != nil {
			for _, g := range append(groups, refused) {
				giveBack(g, results, notSent(ctx, err))
			}
			return false, true
		}
		switch n := len(refused); n {
		case 0:
		case 1:
			results[refused[0].position] = failed(refused[0].err)
		default:
			groups = append([][]*record{refused[:n/2], refused[n/2:]}, groups...)
		}
	}
	return healthy, false
}

// pass returns the group without the records of partitions in which an earlier record failed: they
// would overtake it.
func pass(group []*record, held map[int32]sink.Result, results []sink.Result) []*record {
	if len(held) == 0 {
		return group
	}
	var free []*record
	for _, a := range group {
		if why, is := held[a.kafka.Partition]; is {
			why.Status = sink.Retry
			results[a.position] = why
		} else {
			free = append(free, a)
		}
	}
	return free
}

func giveBack(records []*record, results []sink.Result, why sink.Result) {
	for _, a := range records {
		results[a.position] = why
	}
}

// scratch is the memory of one Deliver. It is reused only if the client has answered all records:
// until then the client may still read them.
type scratch struct {
	buffer  []byte
	headers []kgo.RecordHeader
	all     []record
	list    []*record
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// mostKept is the size of the largest buffer that is kept for reuse.
const mostKept = 8 << 20

func (m *scratch) clear() {
	if cap(m.buffer) > mostKept {
		m.buffer = nil
	}
	m.buffer = m.buffer[:0]
	clear(m.headers)
	m.headers = m.headers[:0]
	clear(m.all)
	m.all = m.all[:0]
	clear(m.list)
	m.list = m.list[:0]
}

// records encodes the batch as records. It answers a delivery that cannot be encoded.
func (m *scratch) records(s *Sink, batch []sink.Delivery, results []sink.Result) []*record {
	if cap(m.all) < len(batch) {
		m.all = make([]record, 0, len(batch))
	}
	m.all = m.all[:len(batch)]
	for i := range batch {
		a := &m.all[i]
		a.position = i
		var err error
		if a.kafka, err = m.encode(s.format, &batch[i]); err != nil {
			results[i] = sink.Result{Status: sink.Permanent, Code: InvalidEvent, Detail: err.Error()}
			continue
		}
		a.kafka.Topic = s.topic
		m.list = append(m.list, a)
	}
	return m.list
}

func (m *scratch) encode(format sink.Format, d *sink.Delivery) (kgo.Record, error) {
	if format == Raw && !d.Test {
		return raw(d.Event.Payload)
	}
	var encoded sink.Encoded
	var err error
	if format == Raw || format == Payload {
		encoded, err = sink.Bare(d)
	} else {
		m.buffer, encoded, err = sink.Append(m.buffer, format, d)
	}
	if err != nil {
		return kgo.Record{}, err
	}
	record := kgo.Record{Value: encoded.Body, Headers: m.head(format, d, encoded)}
	if d.Event.Key != "" {
		record.Key = m.text(d.Event.Key)
	}
	return record, nil
}

// head returns the record's headers: those of the CloudEvents binding for Kafka, and Tidemark's.
func (m *scratch) head(format sink.Format, d *sink.Delivery, encoded sink.Encoded) []kgo.RecordHeader {
	start := len(m.headers)
	add := func(name, value string) {
		m.headers = append(m.headers, kgo.RecordHeader{Key: name, Value: m.text(value)})
	}
	for _, h := range encoded.Headers {
		if format == sink.CloudEventsBinary {
			add(attributeHeader(h.Name), h.Value)
		}
		if h.Name == "traceparent" {
			add(h.Name, h.Value)
		}
	}
	add("content-type", encoded.ContentType)
	add("tidemark-event-id", d.Event.ID)
	add("tidemark-route", d.Route)
	add("tidemark-epoch", strconv.FormatInt(d.Epoch, 10))
	add("tidemark-attempt", strconv.Itoa(d.Attempt))
	if d.Replay {
		add("tidemark-replay", "true")
	}
	if d.Test {
		add("tidemark-test", "true")
	}
	return m.headers[start:len(m.headers):len(m.headers)]
}

func (m *scratch) text(s string) []byte {
	start := len(m.buffer)
	m.buffer = append(m.buffer, s...)
	return m.buffer[start:len(m.buffer):len(m.buffer)]
}

var attributeHeaders sync.Map

// attributeHeader returns "ce_" and the name. It allocates each name only once.
func attributeHeader(name string) string {
	if known, ok := attributeHeaders.Load(name); ok {
		return known.(string)
	}
	known, _ := attributeHeaders.LoadOrStore(name, "ce_"+name)
	return known.(string)
}
