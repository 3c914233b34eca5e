package kafka_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/sink/kafka"
)

func TestDialRefuses(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	one := []string{"kafka.example.com:9092"}
	for want, o := range map[string]kafka.Options{
		`brokers are missing`:                               {},
		`broker "kafka.example.com" must be host:port`:      {Brokers: []string{"kafka.example.com"}},
		`broker ":9092" must be host:port`:                  {Brokers: []string{":9092"}},
		`broker "a:70000" must be host:port`:                {Brokers: []string{"a:70000"}},
		`max record bytes is 10, must be 1024 to 104857600`: {Brokers: one, MaxRecordBytes: 10},
		`timeout is -1s, must not be negative`:              {Brokers: one, Timeout: -time.Second},
		`sasl needs a user and a password`:                  {Brokers: one, SASL: &kafka.SASL{Mechanism: "plain", User: "u"}},
		`sasl mechanism is "gssapi", must be plain, scram-sha-256 or scram-sha-512`: {
			Brokers: one, SASL: &kafka.SASL{Mechanism: "gssapi", User: "u", Password: "s3cret"},
		},
		`tls: a certificate and its key go together, and one of them is missing`: {Brokers: one, TLS: &kafka.TLS{CertFile: empty}},
		`tls: ` + empty + ` has no certificate in PEM`:                           {Brokers: one, TLS: &kafka.TLS{CAFile: empty}},
		`tls: open ` + empty + `.not: no such file or directory`:                 {Brokers: one, TLS: &kafka.TLS{CAFile: empty + ".not"}},
		`tls: tls: failed to find any PEM data in certificate input`:             {Brokers: one, TLS: &kafka.TLS{CertFile: empty, KeyFile: empty}},
	} {
		_, err := kafka.Dial(o)
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestSinkRefuses(t *testing.T) {
	t.Parallel()
	connection := dial(t, kafka.Options{Brokers: []string{"kafka.example.com:9092"}, MaxRecordBytes: 100 << 20})
	for _, topic := range []string{"", ".", "..", "a b", "a/b", "ü", "a\n", strings.Repeat("x", 250)} {
		if _, err := connection.Sink(topic, ""); err == nil || !strings.Contains(err.Error(), "must be 1 to 249 of") {
			t.Errorf("%q: got %v", topic, err)
		}
	}
	if _, err := connection.Sink("a", "xml"); err == nil || !strings.Contains(err.Error(), `format is "xml"`) {
		t.Errorf("got %v", err)
	}
}
