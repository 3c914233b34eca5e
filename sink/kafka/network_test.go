package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
)

// soon limits the wait for an event that should come at once. It is long for busy machines.
const soon = 10 * time.Second

func TestDownAndUp(t *testing.T) {
	t.Parallel()
	port := testserver.FreePort(t)
	dir := t.TempDir()
	up := func() *kfake.Cluster { return broker(t, 1, kfake.Ports(port), kfake.DataDir(dir)) }
	address := net.JoinHostPort("127.0.0.1", big.NewInt(int64(port)).String())
	s := target(t, kafka.Options{Brokers: []string{address}, Timeout: 4 * time.Second})

	begin := time.Now()
	if got := outcomes(s.Deliver(t.Context(), batch(5, oneKey))); got["retry connect"] != 5 {
		t.Fatalf("never up: got %v", got)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("took %s to find no broker", took)
	}
	cluster := up()
	if got := outcomes(s.Deliver(t.Context(), batch(5, oneKey))); got["delivered"] != 5 {
		t.Fatalf("up: got %v", got)
	}
	cluster.Close()
	// Only a write shows that the broker is gone.
	if got := outcomes(s.Deliver(t.Context(), batch(5, oneKey))); got["retry connect"]+got["unknown timeout"] != 5 {
		t.Fatalf("down: got %v", got)
	}
	if got := outcomes(s.Deliver(t.Context(), batch(5, oneKey))); got["retry connect"] != 5 {
		t.Fatalf("still down: got %v", got)
	}
	cluster = up()
	if got := outcomes(s.Deliver(t.Context(), batch(5, oneKey))); got["delivered"] != 5 {
		t.Fatalf("up again: got %v", got)
	}
	if got := len(stored(t, cluster.ListenAddrs())); got != 10 {
		t.Errorf("%d arrived", got)
	}
}

// held starts a broker that holds produce requests until letGo is closed. came is closed at the
// first one.
func held(t *testing.T, key kmsg.Key) (cluster *kfake.Cluster, came, letGo chan struct{}) {
	t.Helper()
	cluster = broker(t, 1)
	came, letGo = make(chan struct{}), make(chan struct{})
	cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.DropControl()
		close(came)
		cluster.SleepControl(func() { <-letGo })
		return nil, nil, false
	})
	return cluster, came, letGo
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	for want, key := range map[string]kmsg.Key{"unknown cancelled": kmsg.Produce, "retry cancelled": kmsg.InitProducerID} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			cluster, came, letGo := held(t, key)
			s := target(t, kafka.Options{Brokers: cluster.ListenAddrs(), MaxRecordBytes: 20_000})
			ctx, cancel := context.WithCancel(t.Context())
			answers := make(chan []sink.Result)
			go func() { answers <- s.Deliver(ctx, batch(1000, keys)) }()
			<-came
			cancel()
			select {
			case results := <-answers:
				if got := outcomes(results); got[want] != 1000 {
					t.Errorf("got %v", got)
				}
			case <-time.After(soon):
				t.Fatal("Deliver did not return")
			}
			close(letGo)
			// Records that were not sent when Deliver returned never arrive.
			after := target(t, kafka.Options{Brokers: cluster.ListenAddrs()})
			if got := outcomes(after.Deliver(t.Context(), batch(1, func(int) string { return "last" }))); got["delivered"] != 1 {
				t.Fatal(got)
			}
			first := len(stored(t, cluster.ListenAddrs())) - 1
			if first < 0 || first > 200 || key != kmsg.Produce && first != 0 {
				t.Errorf("%d arrived", first)
			}
			// The sink still works.
			if got := outcomes(s.Deliver(t.Context(), batch(3, keys))); got["delivered"] != 3 {
				t.Error(got)
			}
			if got := len(stored(t, cluster.ListenAddrs())); got != first+4 {
				t.Errorf("%d arrived, not %d", got, first+4)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	cluster, _, letGo := held(t, kmsg.Produce)
	defer close(letGo)
	s := target(t, kafka.Options{Brokers: cluster.ListenAddrs(), Timeout: 300 * time.Millisecond})
	if got := outcomes(s.Deliver(t.Context(), batch(10, keys))); got["unknown timeout"] != 10 {
		t.Errorf("got %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := outcomes(s.Deliver(ctx, batch(10, keys))); got["retry cancelled"] != 10 {
		t.Errorf("got %v", got)
	}
}

// deafListener closes a connection instead of the first answer to a request with records.
type deafListener struct {
	net.Listener
	left *atomic.Int32
}

func (l deafListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &deafConn{Conn: c, left: l.left}, err
}

type deafConn struct {
	net.Conn
	left    *atomic.Int32
	records atomic.Bool
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	// The broker reads the length, and then the rest, which begins with the kind.
	if n > 4 && binary.BigEndian.Uint16(b) == 0 {
		c.records.Store(true)
	}
	return n, err
}

func (c *deafConn) Write(b []byte) (int, error) {
	if c.records.Load() && c.left.Add(-1) >= 0 {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// The records are written and the answer is lost: the client sends them again, and the broker
// recognizes them by the producer's sequence numbers.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	var left atomic.Int32
	left.Store(2)
	cluster := broker(t, 1, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return deafListener{l, &left}, err
	}))
	s := target(t, kafka.Options{Brokers: cluster.ListenAddrs()})
	if got := outcomes(s.Deliver(t.Context(), batch(10, oneKey))); got["delivered"] != 10 {
		t.Fatal(got)
	}
	if left.Load() >= 0 {
		t.Error("no answer was lost")
	}
	if got := len(stored(t, cluster.ListenAddrs())); got != 10 {
		t.Errorf("%d arrived", got)
	}
}

func TestSASL(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			cluster := broker(t, 1, kfake.EnableSASL(), kfake.Superuser(strings.ToUpper(mechanism), "clerk", "right"))
			for password, want := range map[string]string{"right": "delivered", "wr0ng-pa55": "retry connect"} {
				s := target(t, kafka.Options{
					Brokers: cluster.ListenAddrs(), SASL: &kafka.SASL{Mechanism: mechanism, User: "clerk", Password: password},
				})
				results := s.Deliver(t.Context(), batch(2, oneKey))
				if got := outcomes(results); got[want] != 2 {
					t.Errorf("%s: got %+v", password, results[0])
				}
				if strings.Contains(results[0].Detail, password) || strings.Contains(results[0].Detail, "\n") {
					t.Errorf("detail %q", results[0].Detail)
				}
			}
			// The fake broker hangs up on a wrong password, as old brokers did. This is the answer of others.
			cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
				answer := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
				return answer, nil, true
			})
			refused := target(t, kafka.Options{
				Brokers: cluster.ListenAddrs(), SASL: &kafka.SASL{Mechanism: mechanism, User: "clerk", Password: "wrong"},
			})
			if got := outcomes(refused.Deliver(t.Context(), batch(1, oneKey))); got["retry not_authorized refused"] != 1 {
				t.Errorf("got %v", got)
			}
			// Without a login.
			results := target(t, kafka.Options{Brokers: cluster.ListenAddrs()}).Deliver(t.Context(), batch(1, oneKey))
			if results[0].Status != sink.Retry {
				t.Errorf("got %+v", results[0])
			}
		})
	}
}

// A user may log in, but not write.
func TestACL(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 1, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "reader", "r", kfake.ACL{
		Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: kmsg.ACLOperationDescribe, Allow: true,
	}))
	s := target(t, kafka.Options{
		Brokers: cluster.ListenAddrs(), SASL: &kafka.SASL{Mechanism: "plain", User: "reader", Password: "r"},
	})
	results := s.Deliver(t.Context(), batch(10, keys))
	if got := outcomes(results); got["retry not_authorized refused"] != 10 {
		t.Errorf("got %v %+v", got, results[0])
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certificate, file := certificate(t, "kafka.example.com")
	cluster := broker(t, 1, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	for name, test := range map[string]struct {
		tls  *kafka.TLS
		want string
	}{
		"right":              {&kafka.TLS{CAFile: file, ServerName: "kafka.example.com"}, "delivered"},
		"wrong name":         {&kafka.TLS{CAFile: file}, "retry connect"},
		"unknown authority":  {&kafka.TLS{ServerName: "kafka.example.com"}, "retry connect"},
		"TLS is not spoken":  {nil, "retry connect"},
		"with a certificate": {&kafka.TLS{CAFile: file, ServerName: "kafka.example.com", CertFile: file, KeyFile: file}, "delivered"},
	} {
		s := target(t, kafka.Options{Brokers: cluster.ListenAddrs(), TLS: test.tls, Timeout: soon})
		results := s.Deliver(t.Context(), batch(1, oneKey))
		if got := outcomes(results); got[test.want] != 1 {
			t.Errorf("%s: got %+v", name, results[0])
		}
		if name == "wrong name" && !strings.Contains(results[0].Detail, "certificate") {
			t.Errorf("detail %q", results[0].Detail)
		}
	}
}

// certificate returns a certificate for the name, and a file with it and its key.
func certificate(t *testing.T, name string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	file := filepath.Join(t.TempDir(), "broker.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	return pair, file
}

func TestPingAndClose(t *testing.T) {
	t.Parallel()
	cluster := broker(t, 1)
	connection := dial(t, kafka.Options{Brokers: cluster.ListenAddrs()})
	if err := connection.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	s, err := connection.Sink(topic, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), connection.Close(), connection.Close()); err != nil {
		t.Error(err)
	}
	if got := outcomes(s.Deliver(t.Context(), batch(1, oneKey))); got["retry connect"] != 1 {
		t.Error(got)
	}
	if err := connection.Ping(t.Context()); err == nil {
		t.Error("a closed connection answered")
	}
}
