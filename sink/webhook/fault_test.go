package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// listen passes each connection to serve and closes it afterwards.
func listen(t testing.TB, serve func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// readRequest reads a request.
func readRequest(c net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// reset makes the close of a connection an error for the other side.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		serve func(c net.Conn)
		want  string // part of the detail
	}{
		"reset after the request":  {func(c net.Conn) { readRequest(c); reset(c) }, "connection reset by peer"},
		"closed after the request": {func(c net.Conn) { readRequest(c) }, "EOF"},
		"closed within the status": {func(c net.Conn) { readRequest(c); _, _ = io.WriteString(c, "HTTP/1.1 20") }, "malformed HTTP status"},
		"closed within headers":    {func(c net.Conn) { readRequest(c); _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA: b\r\n") }, "EOF"},
		"no HTTP":                  {func(c net.Conn) { readRequest(c); _, _ = io.WriteString(c, "220 mail.test ESMTP\r\n\r\n") }, "malformed HTTP"},
		"headers without end": {func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 1000)+"\r\n")
		}, "headers exceeded"},
		"interim answers without end": {func(c net.Conn) {
			readRequest(c)
			for range 100_000 {
				if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"); err != nil {
					return
				}
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := deliver(t, open(t, webhook.Options{URL: listen(t, test.serve)}), paid())
			if got.Status != sink.Unknown || got.Code != "reset" || !strings.Contains(got.Detail, test.want) || len(got.Detail) > 500 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A server that is not HTTP echoes the request, or text that quotes it.
func TestEcho(t *testing.T) {
	t.Parallel()
	d := paid()
	d.Event.Payload = json.RawMessage(`47110815`) // too short to be told from other text
	for name, before := range map[string]string{
		"all of it": "", "as a status": "HTTP/1.1 2", "as a header": "HTTP/1.1 200 OK\r\n", "as a header with blanks": "HTTP/1.1 200 OK\r\nA: b\r\n \r\n",
		"the payload as a first line": "HTTP/1.1 200 OK\r\n " + string(d.Event.Payload) + "\r\n\r\n",
		"the payload as a status":     "HTTP/1.1 " + string(d.Event.Payload) + "\r\n\r\n", "the payload as a header": "HTTP/1.1 200 OK\r\n" + string(d.Event.Payload) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := listen(t, func(c net.Conn) {
				buffer := make([]byte, 64<<10)
				n, _ := c.Read(buffer)
				_, _ = io.WriteString(c, before)
				_, _ = c.Write(buffer[:n])
			})
			s := open(t, webhook.Options{
				URL: address + "/hook?token=topsecret", Format: sink.CloudEventsBinary, Headers: map[string]string{"Authorization": "Bearer sesame"},
			})
			got := deliver(t, s, d)
			if got.Status != sink.Unknown || got.Code != "reset" || got.Detail == "" {
				t.Errorf("got %+v", got)
			}
			for _, text := range []string{"topsecret", "sesame", "47110815"} {
				if strings.Contains(got.Detail, text) {
					t.Errorf("the detail repeats %s: %s", text, got.Detail)
				}
			}
		})
	}
}

// A part of the request was sent, and no answer came back.
func TestResetWithinTheRequest(t *testing.T) {
	t.Parallel()
	d := paid()
	d.Event.Payload = json.RawMessage(`"` + strings.Repeat("x", 64<<20) + `"`) // more than the system buffers
	s := open(t, webhook.Options{URL: listen(t, func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, 1<<20))
		reset(c)
	})})
	if got := deliver(t, s, d); got.Status != sink.Unknown || got.Code != "reset" {
		t.Errorf("got %+v", got)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	s := open(t, webhook.Options{URL: listen(t, func(c net.Conn) {
		readRequest(c)
		close(arrived)
		<-release
	})})
	t.Cleanup(func() { close(release) }) // before the listener waits for its connections
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	got := s.Deliver(ctx, []sink.Delivery{paid(), paid()})
	check(t, got[0], sink.Result{Status: sink.Unknown, Code: "timeout", Detail: "no answer within the time for it"})
	check(t, got[1], sink.Result{Status: sink.Retry, Code: "timeout", Detail: "nothing was sent within the time for it"})
	<-arrived
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	s := open(t, webhook.Options{URL: listen(t, func(c net.Conn) {
		readRequest(c)
		cancel()
		_, _ = io.Copy(io.Discard, c) // until the sender hangs up
		close(gone)
	})})
	got := s.Deliver(ctx, []sink.Delivery{paid(), paid()})
	check(t, got[0], sink.Result{Status: sink.Unknown, Code: "canceled", Detail: "no answer before the sender was stopped"})
	check(t, got[1], sink.Result{Status: sink.Retry, Code: "canceled", Detail: "nothing was sent before the sender was stopped"})
	<-gone
}

// A request that waits for a connection has not been sent.
func TestTimeoutBeforeAConnection(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	address := server(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	})
	s := open(t, webhook.Options{URL: address, MaxConns: 1})
	first := make(chan sink.Result, 1)
	go func() { first <- deliver(t, s, paid()) }()
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	check(t, s.Deliver(ctx, []sink.Delivery{paid()})[0], sink.Result{Status: sink.Retry, Code: "timeout", Detail: "no connection within the time for it"})
	close(release)
	check(t, <-first, sink.Result{Status: sink.Delivered})
}

// A request that is given up half-way never arrives completely, however long the target goes on reading.
func TestNothingIsSentAfterwards(t *testing.T) {
	t.Parallel()
	const size = 64 << 20 // more than the system buffers
	ctx, cancel := context.WithCancel(t.Context())
	release, read := make(chan struct{}), make(chan int64, 1)
	address := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		cancel()
		<-release
		n, _ := io.Copy(io.Discard, c)
		read <- n
	})
	d := paid()
	d.Event.Payload = json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
	s := open(t, webhook.Options{URL: address, Format: sink.CloudEventsBinary})
	got := s.Deliver(ctx, []sink.Delivery{d})[0]
	check(t, got, sink.Result{Status: sink.Unknown, Code: "canceled", Detail: "no answer before the sender was stopped"})
	clear(d.Event.Payload) // the race detector fails the test if the payload is still read
	close(release)
	if n := <-read; n >= size {
		t.Errorf("%d bytes arrived", n)
	}
}

// A server closes idle connections: the next request uses another one.
func TestIdleConnectionsThatWereClosed(t *testing.T) {
	t.Parallel()
	s := open(t, webhook.Options{URL: listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n") // without announcing the close
	})})
	for range 20 {
		got := deliver(t, s, paid())
		if got.Status != sink.Delivered && (got.Status != sink.Unknown || got.Code != "reset") {
			t.Errorf("got %+v", got)
		}
	}
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	check(t, deliver(t, open(t, webhook.Options{URL: "http://" + closed}), paid()), sink.Result{
		Status: sink.Retry, Code: "connect", Detail: "dial tcp " + closed + ": connect: connection refused",
	})

	s, err := webhook.NewResolving(webhook.Options{URL: "https://nobody.test/?token=secret", Secrets: []string{secret}}, resolver())
	if err != nil {
		t.Fatal(err)
	}
	check(t, deliver(t, s, paid()), sink.Result{Status: sink.Retry, Code: "dns", Detail: "lookup nobody.test: no such host"})
}

func TestTLS(t *testing.T) {
	t.Parallel()
	start := func(config *tls.Config) (address, ca string) {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = config
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL, authority(t, s)
	}
	address, ca := start(nil)
	strict, strictCA := start(&tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(address, "https://"))
	old, oldCA := start(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	hangsUp := "https" + strings.TrimPrefix(listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 100)); reset(c) }), "http")
	plain := "https" + strings.TrimPrefix(server(t, func(http.ResponseWriter, *http.Request) {}), "http")
	certificate, key := clientCertificate(t)
	for name, test := range map[string]struct {
		o       webhook.Options
		outcome sink.Status
		code    string
		detail  string // part of it
	}{
		"known":                 {webhook.Options{URL: address, CAFile: ca}, sink.Delivered, "", ""},
		"an unknown authority":  {webhook.Options{URL: address}, sink.Retry, "tls", "certificate signed by unknown authority"},
		"a wrong name":          {webhook.Options{URL: "https://shop.test:" + port, CAFile: ca}, sink.Retry, "tls", "not shop.test"},
		"a name that is told":   {webhook.Options{URL: "https://shop.test:" + port, CAFile: ca, ServerName: "example.com"}, sink.Delivered, "", ""},
		"a wrong name told":     {webhook.Options{URL: address, CAFile: ca, ServerName: "other.test"}, sink.Retry, "tls", "not other.test"},
		"an old version":        {webhook.Options{URL: old, CAFile: oldCA}, sink.Retry, "tls", "protocol version"},
		"plain HTTP":            {webhook.Options{URL: plain, CAFile: ca}, sink.Retry, "tls", "not look like a TLS handshake"},
		"reset within":          {webhook.Options{URL: hangsUp, CAFile: ca}, sink.Retry, "connect", "reset by peer"},
		"a client certificate":  {webhook.Options{URL: strict, CAFile: strictCA, CertFile: certificate, KeyFile: key}, sink.Delivered, "", ""},
		"no client certificate": {webhook.Options{URL: strict, CAFile: strictCA}, sink.Unknown, "tls", "certificate required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.o.Allow, test.o.Secrets = loopback, []string{secret}
			s, err := webhook.NewResolving(test.o, resolver("127.0.0.1"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			got := deliver(t, s, paid())
			if test.outcome == sink.Unknown {
				// With TLS 1.3 the server refuses a client after its handshake, when the request may have been sent. Whether
				// the sink sees the alert or the end of the connection first is chance.
				if got.Status == sink.Delivered || got.Status == sink.Permanent || got.Code != "tls" && got.Code != "reset" {
					t.Errorf("got %+v", got)
				}
				return
			}
			if got.Status != test.outcome || got.Code != test.code || !strings.Contains(got.Detail, test.detail) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func clientCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil) // for its certificate
	s.Close()
	pair := s.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, data := range map[string][]byte{certificate: pemOf("CERTIFICATE", pair.Certificate[0]), key: pemOf("PRIVATE KEY", der)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

func TestEventThatGoesInNoEnvelope(t *testing.T) {
	t.Parallel()
	s := open(t, webhook.Options{URL: "https://192.0.2.1"})
	check(t, deliver(t, s, sink.Delivery{}), sink.Result{Status: sink.Permanent, Code: "invalid", Detail: "event has no id"})
}

// Close leaves no connection, whatever is under way.
func TestClose(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 2)
	s, err := webhook.New(webhook.Options{
		URL: listen(t, func(c net.Conn) {
			readRequest(c)
			fmt.Fprint(c, "HTTP/1.1 204 No Content\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
			ended <- struct{}{}
		}), Secrets: []string{secret}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	})
	if err != nil {
		t.Fatal(err)
	}
	check(t, deliver(t, s, paid()), sink.Result{Status: sink.Delivered})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	if got := deliver(t, s, paid()); got.Status != sink.Retry || got.Code != "connect" {
		t.Errorf("after Close: %+v", got)
	}
}

// TestFailed tests a case that a server cannot cause reliably: the transport reads the body, finds its connection
// closed, and dials again.
func TestFailed(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		err     error
		read    bool
		outcome sink.Status
		code    string
	}{
		{refused, false, sink.Retry, "connect"},
		{refused, true, sink.Retry, "connect"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "x"}}, true, sink.Retry, "dns"},
		{&tls.CertificateVerificationError{Err: io.EOF}, true, sink.Retry, "tls"},
		{tls.RecordHeaderError{}, true, sink.Retry, "tls"},
		{&net.OpError{Op: "remote error", Err: io.EOF}, false, sink.Retry, "tls"},
		{&net.OpError{Op: "remote error", Err: io.EOF}, true, sink.Unknown, "tls"},
		{io.EOF, false, sink.Retry, "connect"},
		{io.EOF, true, sink.Unknown, "reset"},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, true, sink.Unknown, "reset"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, false, sink.Retry, "local"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENFILE)}, true, sink.Retry, "local"},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "x", Err: "dial udp 1.1.1.1:53: socket: too many open files"}}, false, sink.Retry, "local"},
		{&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ENOBUFS)}, true, sink.Unknown, "reset"},
	} {
		if got := webhook.Failed(test.err, test.read); got.Status != test.outcome || got.Code != test.code || got.Local != (test.code == "local") {
			t.Errorf("%v, read %t: %+v", test.err, test.read, got)
		}
	}
}

// A body can be read again from its beginning, but not after it was given up.
func TestBody(t *testing.T) {
	t.Parallel()
	again, end := webhook.NewBody([]byte("text"))
	for range 2 {
		r, err := again()
		if err != nil {
			t.Fatal(err)
		}
		if err := iotest.TestReader(r, []byte("text")); err != nil {
			t.Error(err)
		}
	}
	r, _ := again()
	end()
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("read %d, %v", n, err)
	}
}
