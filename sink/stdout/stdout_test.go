package stdout_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/stdout"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func delivery(id, payload string) sink.Delivery {
	return sink.Delivery{Event: tidemark.Event{ID: id, Seq: 1, Domain: "shop", Type: "paid", Key: "k", Payload: json.RawMessage(payload)}}
}

func open(t *testing.T, w io.Writer, o stdout.Options) *stdout.Sink {
	t.Helper()
	s, err := stdout.New(w, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, got []sink.Result, want ...sink.Result) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

var delivered = sink.Result{Status: sink.Delivered}

func TestLines(t *testing.T) {
	t.Parallel()
	for format, want := range map[sink.Format]string{
		"": `{"specversion":"1.0","id":"a","source":"/tidemark/shop","type":"paid","subject":"k","partitionkey":"k",` +
			`"sequence":"0000000000000000001","domain":"shop","datacontenttype":"application/json","data":{"n": "1  2"}}` + "\n",
		sink.JSON: `{"event_id":"a","seq":1,"created_at":null,"occurred_at":null,"lane":null,"severity":null,"domain":"shop",` +
			`"type":"paid","stream":null,"key":"k","subject_table":null,"subject_ref":null,"idempotency_key":null,` +
			`"trace":null,"actor":null,"payload":{"n": "1  2"}}` + "\n",
	} {
		var out bytes.Buffer
		s := open(t, &out, stdout.Options{Format: format})
		check(t, s.Deliver(t.Context(), []sink.Delivery{delivery("a", `{"n": "1  2"}`)}), delivered)
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	}
}

// A payload of several lines is still one line.
func TestPayloadOfSeveralLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	payload := "{\r\n\t\"a\": [\n1,\n2]\n}\n"
	s := open(t, &out, stdout.Options{Format: sink.JSON})
	d := delivery("a", payload)
	check(t, s.Deliver(t.Context(), []sink.Delivery{d}), delivered)
	if n := strings.Count(out.String(), "\n"); n != 1 || !json.Valid(out.Bytes()) {
		t.Errorf("%d lines: %q", n, out.String())
	}
	if string(d.Event.Payload) != payload {
		t.Error("the event itself was changed")
	}
}

// limited accepts a number of further bytes and then fails.
type limited struct {
	bytes.Buffer
	left   int
	writes int
	err    error
}

func (l *limited) Write(p []byte) (int, error) {
	l.writes++
	if len(p) <= l.left {
		l.left -= len(p)
		return l.Buffer.Write(p)
	}
	n, _ := l.Buffer.Write(p[:l.left])
	l.left = 0
	return n, l.err
}

func TestWritesThatFail(t *testing.T) {
	t.Parallel()
	batch := []sink.Delivery{delivery("a", `{}`), {}, delivery("b", `{}`), delivery("c", `{}`)}
	text := func(id string) string {
		var out bytes.Buffer
		open(t, &out, stdout.Options{}).Deliver(t.Context(), []sink.Delivery{delivery(id, `{}`)})
		return out.String()
	}
	size := len(text("a"))
	result := func(o sink.Status, code, detail string) sink.Result {
		return sink.Result{Status: o, Code: code, Detail: detail}
	}
	invalid := result(sink.Permanent, "invalid", "event has no id")
	for name, test := range map[string]struct {
		left int
		err  error
		want []sink.Result
	}{
		"nothing": {0, errors.New("disk\nfull"), []sink.Result{
			result(sink.Retry, "write", "disk full"), invalid, result(sink.Retry, "write", "disk full"), result(sink.Retry, "write", "disk full"),
		}},
		"within the first": {1, io.ErrClosedPipe, []sink.Result{
			result(sink.Unknown, "write", "a part was written: io: read/write on closed pipe"), invalid,
			result(sink.Retry, "write", "io: read/write on closed pipe"), result(sink.Retry, "write", "io: read/write on closed pipe"),
		}},
		"one line": {size, io.ErrClosedPipe, []sink.Result{
			delivered, invalid, result(sink.Retry, "write", "io: read/write on closed pipe"), result(sink.Retry, "write", "io: read/write on closed pipe"),
		}},
		"all but the end of the second": {2*size - 1, nil, []sink.Result{
			delivered, invalid, result(sink.Unknown, "write", "a part was written: short write"), result(sink.Retry, "write", "short write"),
		}},
		"all": {3 * size, nil, []sink.Result{delivered, invalid, delivered, delivered}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &limited{left: test.left, err: test.err}
			s := open(t, w, stdout.Options{})
			check(t, s.Deliver(t.Context(), batch), test.want...)
			if w.writes != 1 {
				t.Errorf("%d writes", w.writes)
			}
			// A torn line does not run into the next one.
			w.left = 1 << 20
			check(t, s.Deliver(t.Context(), batch[3:]), delivered)
			check(t, s.Deliver(t.Context(), batch[2:3]), delivered)
			want := (text("a") + text("b") + text("c"))[:test.left]
			if test.left%size > 0 {
				want += "\n"
			}
			if diff := cmp.Diff(want+text("c")+text("b"), w.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// liar returns counts that the contract of io.Writer forbids.
type liar int

func (l liar) Write([]byte) (int, error) { return int(l), nil }

func TestWritersThatLie(t *testing.T) {
	t.Parallel()
	check(t, open(t, liar(-5), stdout.Options{}).Deliver(t.Context(), []sink.Delivery{delivery("a", `{}`)}),
		sink.Result{Status: sink.Retry, Code: "write", Detail: "short write"})
	check(t, open(t, liar(1e6), stdout.Options{}).Deliver(t.Context(), []sink.Delivery{delivery("a", `{}`)}), delivered)
}

// While a write hangs, nothing else is written. After it returns, the sink works as before.
func TestWriterThatHangs(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	s := open(t, w, stdout.Options{})
	deliver := func(batch ...sink.Delivery) []sink.Result {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return s.Deliver(ctx, batch)
	}
	check(t, append(deliver(delivery("a", `{}`), sink.Delivery{}), deliver(delivery("b", `{}`))...),
		sink.Result{Status: sink.Unknown, Code: "timeout", Detail: "the writer has not returned within the time for it"},
		sink.Result{Status: sink.Permanent, Code: "invalid", Detail: "event has no id"},
		sink.Result{Status: sink.Retry, Code: "timeout", Detail: "nothing was written within the time for it"})
	got := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		got <- string(b)
	}()
	check(t, s.Deliver(t.Context(), []sink.Delivery{delivery("c", `{}`)}), delivered)
	_ = w.Close()
	lines := strings.Split(<-got, "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"id":"a"`) || !strings.Contains(lines[1], `"id":"c"`) || lines[2] != "" {
		t.Errorf("got %q", lines)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for format, want := range map[sink.Format]string{
		"xml":                  `format is "xml", must be cloudevents, cloudevents-binary or json`,
		sink.CloudEventsBinary: "format is cloudevents-binary, whose headers have no place in a line; choose cloudevents or json",
	} {
		if _, err := stdout.New(io.Discard, stdout.Options{Format: format}); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// target is a writer whose behaviour the suite sets, for all lines or for those that contain an id.
type target struct {
	mu      sync.Mutex
	text    []byte
	how     tidemarktest.Behaviour
	ids     []string
	changed chan struct{}
}

func (w *target) behave(how tidemarktest.Behaviour, ids ...string) bool {
	if how == tidemarktest.TargetRefusesForGood || how == tidemarktest.TargetIsGone {
		return false // a writer cannot say so
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.how, w.ids = how, ids
	close(w.changed)
	w.changed = make(chan struct{})
	return true
}

func (w *target) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := 0 // start of the first line that is not simply accepted
	if len(w.ids) > 0 {
		if at = bytes.Index(p, []byte(w.ids[0])); at < 0 {
			at = len(p)
		} else {
			at = bytes.LastIndexByte(p[:at], '\n') + 1
		}
	}
	switch {
	case w.how == tidemarktest.TargetRefuses && at < len(p):
		w.text = append(w.text, p[:at]...)
		return at, errors.New("refused")
	case w.how == tidemarktest.TargetLosesAnswers && at < len(p):
		n := at + bytes.IndexByte(p[at:], '\n')
		w.text = append(w.text, p[:n]...)
		return n, errors.New("lost")
	case w.how == tidemarktest.TargetHangs:
		changed := w.changed
		w.mu.Unlock()
		<-changed
		w.mu.Lock()
	}
	w.text = append(w.text, p...)
	return len(p), nil
}

func (w *target) arrived() []tidemarktest.Arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []tidemarktest.Arrival
	for text := range bytes.Lines(w.text) {
		var e struct {
			ID      string          `json:"event_id"`
			Key     string          `json:"key"`
			Trace   string          `json:"trace"`
			Payload json.RawMessage `json:"payload"`
			SpecID  string          `json:"id"`
			SpecKey string          `json:"partitionkey"`
			Parent  string          `json:"traceparent"`
			Data    json.RawMessage `json:"data"`
		}
		if json.Unmarshal(text, &e) == nil {
			list = append(list, tidemarktest.Arrival{
				ID: e.ID + e.SpecID, Key: e.Key + e.SpecKey, Trace: e.Trace + e.Parent, Payload: append(e.Payload, e.Data...),
			})
		}
	}
	return list
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for _, format := range []sink.Format{sink.CloudEvents, sink.JSON} {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			t.Parallel()
			tidemarktest.TestSink(t, func(*testing.T) tidemarktest.SinkTarget {
				w := &target{how: tidemarktest.TargetTakes, changed: make(chan struct{})}
				return tidemarktest.SinkTarget{
					Open:    func() (sink.Sink, error) { return stdout.New(w, stdout.Options{Format: format}) },
					Arrived: w.arrived,
					Behave:  w.behave,
				}
			})
		})
	}
}

// A terminal may show the lines: what an emitter put into an event does not control it.
func TestLinesCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s, err := stdout.New(&out, stdout.Options{Format: sink.JSON})
	if err != nil {
		t.Fatal(err)
	}
	s.Deliver(t.Context(), []sink.Delivery{delivery("1", "{\"a\": \"\u009b2J\u202eeve\"}"), delivery("2", `{"a": "plain"}`)})
	if lines := strings.Split(out.String(), "\n"); len(lines) != 3 || !strings.Contains(lines[0], `\u009b2J\u202eeve`) || strings.ContainsAny(out.String(), "\u009b\u202e") {
		t.Errorf("%+q", out.String())
	}
}
