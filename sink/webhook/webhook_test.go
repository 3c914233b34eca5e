package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret      = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
	older       = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xk"
	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func paid() sink.Delivery {
	at := time.Date(2026, 1, 31, 12, 0, 0, 120000, time.UTC)
	return sink.Delivery{
		Event: tidemark.Event{
			ID: "0199f3a2-7c1e-7d4a-9b1f-000000000042", Seq: 42, CreatedAt: at.Add(time.Second), OccurredAt: at,
			Domain: "shop", Type: "invoice.paid", Payload: json.RawMessage(`{"total": 12.50, "name": "Ünï 5%"}`), Key: "Ünï \"9\" 5%",
			Lane: tidemark.LaneImmediate, Severity: tidemark.SeverityInfo, Trace: traceparent, Actor: "clerk",
		},
		Route: "billing", Attempt: 2, Epoch: 3,
	}
}

// server starts a server that runs until the test ends.
func server(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handlers abort on purpose
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func open(t testing.TB, o webhook.Options) *webhook.Sink {
	t.Helper()
	if o.Secrets == nil && !o.Unsigned {
		o.Secrets = []string{secret}
	}
	if o.Allow == nil {
		o.Allow = loopback
	}
	s, err := webhook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// deliver sends one event, with a timeout that no test should reach.
func deliver(t testing.TB, s *webhook.Sink, d sink.Delivery) sink.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return s.Deliver(ctx, []sink.Delivery{d})[0]
}

func check(t *testing.T, got, want sink.Result) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	requests, bodies := make(chan *http.Request, 2), make(chan string, 2)
	address := server(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		requests <- r
		bodies <- string(b)
	})
	s := open(t, webhook.Options{
		URL: address + "/hook?a=b", Format: sink.CloudEventsBinary,
		Headers: map[string]string{"authorization": "Bearer x", "X-Two": "2"},
	})
	d := paid()
	d.Replay = true
	check(t, deliver(t, s, d), sink.Result{Status: sink.Delivered})
	r := <-requests
	if r.Method != http.MethodPost || r.RequestURI != "/hook?a=b" || r.Host != strings.TrimPrefix(address, "http://") {
		t.Errorf("%s %s to %s", r.Method, r.RequestURI, r.Host)
	}
	if got, want := <-bodies, string(d.Event.Payload); got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	for _, name := range []string{"Webhook-Signature", "Webhook-Timestamp"} {
		if r.Header.Get(name) == "" {
			t.Errorf("%s is missing", name)
		}
		r.Header.Del(name)
	}
	want := http.Header{
		"Authorization": {"Bearer x"}, "X-Two": {"2"}, "User-Agent": {"Tidemark"}, "Content-Type": {"application/json"},
		"Content-Length": {fmt.Sprint(len(d.Event.Payload))},
		"Webhook-Id":     {d.Event.ID}, "Traceparent": {traceparent},
		"Tidemark-Route": {"billing"}, "Tidemark-Attempt": {"2"}, "Tidemark-Epoch": {"3"}, "Tidemark-Replay": {"true"},
		"Ce-Id": {d.Event.ID}, "Ce-Specversion": {"1.0"}, "Ce-Source": {"/tidemark/shop"}, "Ce-Type": {"invoice.paid"},
		"Ce-Subject": {"%C3%9Cn%C3%AF%20%229%22%205%25"}, "Ce-Partitionkey": {"%C3%9Cn%C3%AF%20%229%22%205%25"},
		"Ce-Time": {"2026-01-31T12:00:00.000120Z"}, "Ce-Sequence": {"0000000000000000042"}, "Ce-Domain": {"shop"},
		"Ce-Lane": {"immediate"}, "Ce-Severity": {"info"}, "Ce-Actor": {"clerk"}, "Ce-Traceparent": {traceparent},
		"Ce-Replay": {"true"},
	}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Error(diff)
	}

	d = paid()
	d.Event.Trace = ""
	check(t, deliver(t, s, d), sink.Result{Status: sink.Delivered})
	r = <-requests
	for _, name := range []string{"Traceparent", "Ce-Traceparent", "Tidemark-Replay", "Ce-Replay"} {
		if r.Header.Get(name) != "" {
			t.Errorf("the request has %s", name)
		}
	}
}

// No name of an event or a route can break a request.
func TestOddNames(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	address := server(t, func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Webhook-Id") + " " + r.Header.Get("Tidemark-Route")
	})
	d := paid()
	d.Event.ID, d.Route = "a\r\nb", "ü\x00 %"
	if r := deliver(t, open(t, webhook.Options{URL: address}), d); r.Status != sink.Delivered {
		t.Fatalf("%+v", r)
	}
	if got, want := <-got, "a%0D%0Ab %C3%BC%00%20%25"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	versions := make(chan int, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { versions <- r.ProtoMajor }))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	check(t, deliver(t, open(t, webhook.Options{URL: s.URL, CAFile: authority(t, s)}), paid()), sink.Result{Status: sink.Delivered})
	if got := <-versions; got != 2 {
		t.Errorf("HTTP/%d", got)
	}
}

func TestUserAgentCanBeAnother(t *testing.T) {
	t.Parallel()
	agents := make(chan string, 1)
	address := server(t, func(w http.ResponseWriter, r *http.Request) { agents <- r.UserAgent() })
	deliver(t, open(t, webhook.Options{URL: address, Headers: map[string]string{"user-agent": "Shop"}}), paid())
	if got := <-agents; got != "Shop" {
		t.Errorf("got %q", got)
	}
}

// One connection serves one request after the other, even if the answers have bodies.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	peers := map[string]int{}
	address := server(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		peers[r.RemoteAddr]++
		w.WriteHeader([]int{200, 202, 204, 500, 400}[peers[r.RemoteAddr]%5])
		_, _ = io.WriteString(w, strings.Repeat("x", peers[r.RemoteAddr]*2000))
	})
	s := open(t, webhook.Options{URL: address})
	for range 20 {
		deliver(t, s, paid())
	}
	if len(peers) != 1 {
		t.Errorf("%d connections for 20 requests", len(peers))
	}
}

func TestMaxConns(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	address := server(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		now++
		if most = max(most, now); now == 3 {
			close(full)
		}
		mu.Unlock()
		<-full // three are here together
		mu.Lock()
		now--
		mu.Unlock()
	})
	s := open(t, webhook.Options{URL: address, MaxConns: 3})
	var wg sync.WaitGroup
	results := make([]sink.Result, 30)
	for i := range results {
		wg.Go(func() { results[i] = deliver(t, s, paid()) })
	}
	wg.Wait()
	for _, r := range results {
		check(t, r, sink.Result{Status: sink.Delivered})
	}
	if most != 3 {
		t.Errorf("%d at a time, must be 3", most)
	}
}

// Deliver sends the events of a batch longer than Limits allows one after the other.
func TestBatch(t *testing.T) {
	t.Parallel()
	var ids []string
	address := server(t, func(w http.ResponseWriter, r *http.Request) {
		ids = append(ids, r.Header.Get("Webhook-Id"))
		if len(ids) == 2 {
			w.WriteHeader(http.StatusConflict)
		}
	})
	batch := []sink.Delivery{paid(), paid(), paid()}
	for i := range batch {
		batch[i].Event.ID = fmt.Sprint("id-", i)
	}
	got := open(t, webhook.Options{URL: address}).Deliver(t.Context(), batch)
	want := []sink.Result{{Status: sink.Delivered}, {Status: sink.Permanent, Code: "http_409", Detail: "409 Conflict"}, {Status: sink.Delivered}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"id-0", "id-1", "id-2"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(server(t, func(http.ResponseWriter, *http.Request) {}), "http://"))
	// localhost would never go to a proxy.
	s, err := webhook.NewResolving(webhook.Options{URL: "http://shop.test:" + port, Secrets: []string{secret}, Allow: loopback}, resolver("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	check(t, deliver(t, s, paid()), sink.Result{Status: sink.Delivered})
}

func BenchmarkDeliver(b *testing.B) {
	address := server(b, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	d := paid()
	d.Event.Payload = json.RawMessage(`{"text": "` + strings.Repeat("x", 1000) + `"}`)
	b.Run("sink", func(b *testing.B) {
		s := open(b, webhook.Options{URL: address})
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			batch := []sink.Delivery{d}
			for pb.Next() {
				if r := s.Deliver(b.Context(), batch); r[0].Status != sink.Delivered {
					b.Error(r)
				}
			}
		})
	})
	// The cost of a request of the standard library, without encoding and signing.
	b.Run("client", func(b *testing.B) {
		transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, address, strings.NewReader(string(d.Event.Payload)))
				if err != nil {
					b.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				answer, err := client.Do(req)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		})
	})
}
