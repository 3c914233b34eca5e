package consumer_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
)

// A record whose schema has a number that the registry cannot read is refused, on a service's own topic and on a shared one, and those behind it
// go on. Before other numbers are answered it may be the registry that is wrong, or what is between.
func TestConsumerWithNumbersThatAreNone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/schemas/ids/1" && q.URL.Path != "/schemas/ids/8" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error_code": 404, "message": "HTTP 404 Not Found"}`)
			return
		}
		_, _ = io.WriteString(w, `{"schema": "{}", "schemaType": "JSON"}`)
	}))
	t.Cleanup(server.Close)
	client, err := sr.NewClient(sr.URLs(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 1)
	w.exec(`update tidemark.setting set value = 'claimed' where key = 'commands.shared_topic'`)
	framed := func(topic, frame string, r *kgo.Record) *kgo.Record {
		r.Topic, r.Value = topic, append([]byte(frame), r.Value...)
		return r
	}
	const beyond, odd, good = "\x00\xff\xff\xff\xff", "\x00\x00\x00\x00\x07", "\x00\x00\x00\x00\x08"
	for n, topic := range []string{w.topic, "db-events"} {
		w.send(0, framed(topic, beyond, w.make("a", -1)), framed(topic, odd, w.make("b", -2)), framed(topic, good, w.make("c"+topic, 1+2*n)), framed(topic, "", w.make("d"+topic, 2+2*n)))
	}
	w.runWith(func(o *consumer.Options) { o.Registry = client })
	w.eventually(`select id::text from app.effect order by id`, "1", "2", "3", "4")
	w.eventually(`select count(*)::text from tidemark.worker_cursor where worker = 'commands' and watermark_id = '4'`, "2")
	w.eventually(`select payload ->> 'error_message' from tidemark.outbox where type like 'result.%' and payload ->> 'error_code' = 'envelope.invalid' order by seq`,
		"the record names schema 4294967295, and no registry has numbers above 2147483647", "the record names schema 7, for which the registry answers with HTTP status 404")
	w.eventually(`select error_detail from tidemark.dead_letter order by id`,
		"the record names schema 4294967295, and no registry has numbers above 2147483647", "the record names schema 7, for which the registry answers with HTTP status 404")
}
