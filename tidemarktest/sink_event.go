package tidemarktest

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
)

func sinkSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("TIDEMARK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TIDEMARK_SEED: %v", err)
		}
	}
	t.Logf("TIDEMARK_SEED=%d", seed)
	return seed
}

// deliveries makes n small deliveries, each with a key of its own.
func (s *sinkTest) deliveries(n int) []sink.Delivery {
	batch := make([]sink.Delivery, n)
	for i := range batch {
		batch[i] = s.delivery(100)
	}
	return batch
}

// delivery makes a delivery with a payload of at least size bytes.
func (s *sinkTest) delivery(size int) sink.Delivery {
	var b [16]byte
	for i := range b {
		b[i] = byte(s.random.Uint32())
	}
	x := hex.EncodeToString(b[:])
	id := x[:8] + "-" + x[8:12] + "-7" + x[13:16] + "-8" + x[17:20] + "-" + x[20:]
	s.markers[id] = "secret-" + x
	at := time.Date(2026, 1, 31, 12, 0, 0, s.random.IntN(1e6)*1000, time.UTC)
	return sink.Delivery{
		Event: tidemark.Event{
			ID: id, Seq: s.random.Int64(), CreatedAt: at.Add(time.Second), OccurredAt: at,
			Domain: "shop", Type: "order.paid", Key: x, Payload: s.payload(s.markers[id], size),
			Lane: tidemark.LaneImmediate, Severity: tidemark.SeverityInfo,
			Trace: "00-1" + x[1:] + "-2" + x[1:16] + "-01",
		},
		Route: "tidemarktest", Attempt: 1, Epoch: 1,
	}
}

// payload is written as PostgreSQL writes jsonb: without exponents in numbers.
func (s *sinkTest) payload(marker string, size int) []byte {
	b := []byte(`{"marker": "` + marker + `"`)
	for i := 0; len(b) < size; i++ {
		b = fmt.Appendf(b, `, "%d": `, i)
		b = s.value(b, 1+s.random.IntN(size/20+10), 3)
	}
	if s.random.IntN(4) == 0 {
		const depth = 60
		b = append(append(append(b, `, "deep": `...), strings.Repeat(`{"": [`, depth)...), strings.Repeat(`]}`, depth)...)
	}
	return append(b, '}')
}

var texts = []string{
	"plain ", "Ünï", "名前", "👩‍🚀", "\u2028\u2029", `"\/`, "\n\r\t\b\f\u0001\u007f", "<&>", "\ufeff", "\U0010ffff", "e\u0301", "\u202e", "%00%zz", "{{.}}", "a,b;c",
}

// value appends a value that is about n bytes long.
func (s *sinkTest) value(b []byte, n, depth int) []byte {
	kind := s.random.IntN(7)
	if depth == 0 {
		kind = 2 + s.random.IntN(5)
	}
	switch kind {
	case 0, 1:
		open, shut := `[`, `]`
		if kind == 1 {
			open, shut = `{"k": `, `}`
		}
		return append(s.value(append(b, open...), n, depth-1), shut...)
	case 2:
		return append(b, []string{"null", "true", "false", "0", "-0.10", "1.0"}[s.random.IntN(6)]...)
	case 3: // more digits than a float64 has
		b = strconv.AppendUint(b, 1+s.random.Uint64()/2, 10)
		return fmt.Appendf(b, "%019d.%d", s.random.Int64(), s.random.Uint32())
	}
	var text strings.Builder
	for text.Len() < n {
		text.WriteString(texts[s.random.IntN(len(texts))])
	}
	quoted, _ := json.Marshal(text.String()) // never fails for a string
	return append(b, quoted...)
}

// differs compares key, trace and payload, and returns the first difference. Payloads are compared as jsonb compares them,
// except that numbers must be written alike.
func differs(e tidemark.Event, a Arrival) string {
	switch {
	case a.Key != e.Key:
		return fmt.Sprintf("key is %q, was %q", a.Key, e.Key)
	case a.Trace != e.Trace:
		return fmt.Sprintf("trace is %q, was %q", a.Trace, e.Trace)
	}
	want, err := canonical(e.Payload)
	if err != nil {
		return fmt.Sprintf("payload was %v", err)
	}
	got, err := canonical(a.Payload)
	if err != nil {
		return fmt.Sprintf("payload is %v", err)
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			from := max(i-20, 0)
			return fmt.Sprintf("payload is …%.60q, was …%.60q", got[from:], want[from:])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("payload has %d bytes, had %d", len(got), len(want))
	}
	return ""
}

func canonical(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	return json.Marshal(v)
}

var codes = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

const maxDetail = 1000

// malformed returns what is wrong with the form of a result, or an empty text.
func malformed(r sink.Result, marker string) string {
	control := func(c rune) bool { return unicode.IsControl(c) || c == '\u2028' || c == '\u2029' }
	switch {
	case r.Status < sink.Delivered || r.Status > sink.Unknown:
		return "no outcome"
	case r.After < 0 || r.After > 0 && r.Status != sink.Retry:
		return "After is negative, or set without Retry"
	case r.Gone && r.Status != sink.Permanent:
		return "Gone is set without Permanent"
	case r.Status == sink.Delivered && (r.Code != "" || r.Detail != ""):
		return "Delivered has a Code or a Detail"
	case r.Status == sink.Delivered:
		return ""
	case !codes.MatchString(r.Code):
		return "Code is not a word such as http_503"
	case r.Detail == "":
		return "Detail is missing"
	case !utf8.ValidString(r.Detail) || strings.ContainsFunc(r.Detail, control):
		return "Detail is not one line of text"
	case utf8.RuneCountInString(r.Detail) > maxDetail:
		return fmt.Sprintf("Detail is longer than %d characters", maxDetail)
	case marker != "" && strings.Contains(r.Detail, marker):
		return "Detail repeats the payload"
	}
	return ""
}

func outcomeName(o sink.Status) string {
	names := map[sink.Status]string{sink.Delivered: "Delivered", sink.Retry: "Retry", sink.Permanent: "Permanent", sink.Unknown: "Unknown"}
	if name := names[o]; name != "" {
		return name
	}
	return fmt.Sprintf("Status(%d)", o)
}

// goroutineWatch tells the goroutines of a test from those of tests that run at the same time, by a label: a goroutine
// inherits the labels of the one that starts it.
type goroutineWatch struct{ label string }

func watchGoroutines() *goroutineWatch {
	w := &goroutineWatch{crand.Text()}
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("tidemarktest", w.label)))
	return w
}

func (w *goroutineWatch) stop() { pprof.SetGoroutineLabels(context.Background()) }

// left returns the stacks of the goroutines that still run after 5 seconds.
func (w *goroutineWatch) left() string {
	w.stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); ; <-tick.C {
		var all bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1) // a buffer takes everything
		var left []string
		for stack := range strings.SplitSeq(all.String(), "\n\n") {
			if strings.Contains(stack, w.label) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return strings.Join(left, "\n\n")
		}
	}
}
