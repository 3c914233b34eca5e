package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

// A lettered sink takes dead letters of commands, and gives the sink below, of the format raw, the record that came from Kafka.
// The event has no room for it: JSON holds no bytes, and a record may be larger than an event.
type lettered struct {
	sink.Sink
	db      *store.DB
	version string
	most    int // deliveries in a call; 0: as many as the sink below takes
}

// mostLetters bounds the raw records in memory: a page of events does not, whose dead letters are small, and records may have a megabyte each.
const mostLetters = 8

// letteredSink returns the sink for a route. One that is not for events of commands has dead letters only as an exception: they were
// pending when it changed.
func letteredSink(s sink.Sink, route store.Route, db *store.DB, version string) lettered {
	l := lettered{Sink: s, db: db, version: version}
	if route.Domain == "commands" || route.Domain == "*" {
		l.most = mostLetters
	}
	return l
}

// Limits implements sink.Sink.
func (s lettered) Limits() sink.Limits {
	l := s.Sink.Limits()
	if s.most > 0 {
		l.Batch = min(l.Batch, s.most)
	}
	return l
}

// letterHeader begins the headers that a dead letter adds to its record, and takes the place of.
const letterHeader = "x-dlq-"

// isLetter: the event is one that tidemark.command_letter has emitted, and no test of the route.
func isLetter(d sink.Delivery) bool {
	return d.Event.Domain == "commands" && strings.HasPrefix(d.Event.Type, "dead_letter.") && !d.Test
}

// Deliver implements sink.Sink.
func (s lettered) Deliver(ctx context.Context, batch []sink.Delivery) []sink.Result {
	results := make([]sink.Result, len(batch))
	facts := make([]map[string]json.RawMessage, len(batch))
	ids := make([]int64, len(batch)) // 0: none
	for i, d := range batch {
		if isLetter(d) && json.Unmarshal(d.Event.Payload, &facts[i]) == nil {
			_ = json.Unmarshal(facts[i]["record"], &ids[i])
		}
	}
	records := map[int64]store.CommandRecord{}
	if slices.ContainsFunc(batch, isLetter) {
		all, err := s.db.CommandRecords(ctx, ids, mostLetter)
		if err != nil {
			for i := range results {
				results[i] = sink.Result{Status: sink.Retry, Code: kafka.Local, Local: true, Detail: "the raw records cannot be read: " + err.Error()}
			}
			return results
		}
		for _, r := range all {
			records[r.ID] = r
		}
	}
	var sent []sink.Delivery
	var places []int
	for i, d := range batch {
		if isLetter(d) {
			record, ok := records[ids[i]]
			if !ok {
				results[i] = sink.Result{Status: sink.Permanent, Code: kafka.InvalidEvent, Detail: fmt.Sprintf("tidemark.command_record has no record %d any more", ids[i])}
				continue
			}
			d.Event.Payload = s.letter(record, facts[i])
		}
		sent, places = append(sent, d), append(places, i)
	}
	if len(sent) > 0 {
		for n, result := range s.Sink.Deliver(ctx, sent) {
			results[places[n]] = result
		}
	}
	return results
}

// letter is the record as the format raw takes it: byte for byte, and with headers that say what became of it.
func (s lettered) letter(record store.CommandRecord, facts map[string]json.RawMessage) json.RawMessage {
	raw := rawRecord{Key: record.Key.Bytes, Value: record.Value.Bytes}
	for _, h := range record.Headers {
		// Those of a letter that was sent again are of that letter.
		if !strings.HasPrefix(strings.ToLower(h.Name), letterHeader) {
			raw.Headers = append(raw.Headers, rawHeader(h))
		}
	}
	raw.fit(record.Key, record.Value)
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if value := string(facts[name]); name != "record" && value != "null" {
			var text string
			if json.Unmarshal(facts[name], &text) != nil {
				text = value
			}
			raw.Headers = append(raw.Headers, rawHeader{letterHeader + strings.ReplaceAll(name, "_", "-"), []byte(text)})
		}
	}
	raw.Headers = append(raw.Headers, rawHeader{letterHeader + "worker-version", []byte(s.version)})
	payload, err := json.Marshal(raw)
	if err != nil {
		panic(err) // texts and bytes
	}
	return payload
}

// A rawRecord is a record of the format raw.
type rawRecord struct {
	Key     []byte      `json:"key"`
	Value   []byte      `json:"value"`
	Headers []rawHeader `json:"headers"`
}

type rawHeader struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

const (
	mostLetter = kafka.DefaultMaxRecordBytes - 20_000 // with room for the headers of the letter
	perHeader  = 20                                   // bytes of framing, at most
)

// fit leaves out what is too large for the sink, and says so in headers: of value, headers and key the largest first. All of it
// stays in tidemark.command_record. What was left out of key and value before is too large by itself.
func (r *rawRecord) fit(key, value store.RecordBytes) {
	headers := 0
	for _, h := range r.Headers {
		headers += perHeader + len(h.Name) + len(h.Value)
	}
	var said []rawHeader
	say := func(name, value string) { said = append(said, rawHeader{letterHeader + name, []byte(value)}) }
	about := func(name string, b store.RecordBytes) {
		sum := b.Sum
		if sum == nil {
			whole := sha256.Sum256(b.Bytes)
			sum = whole[:]
		}
		say(name+"-bytes", strconv.Itoa(b.Size))
		say(name+"-sha256", fmt.Sprintf("%x", sum))
	}
	for key.Size+value.Size+headers > mostLetter {
		switch max(key.Size, value.Size, headers) {
		case value.Size:
			about("value", value)
			r.Value, value.Size = []byte{}, 0 // not null, which deletes in a topic that is compacted
		case headers:
			say("headers-left-out", strconv.Itoa(len(r.Headers)))
			r.Headers, headers = nil, 0
		default:
			about("key", key)
			r.Key, key.Size = nil, 0
		}
	}
	r.Headers = append(r.Headers, said...)
}
