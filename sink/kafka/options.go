package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tidemarkhq/tidemark/internal/loopback"
)

// Options say how brokers are reached. The zero value of a field is its default.
type Options struct {
	// Brokers are some of the cluster's, as host:port; the others are asked for.
	// Required.
	Brokers []string

	// ClientID names this program to the brokers. Default: tidemark.
	ClientID string

	// TLS encrypts. Default: nil, nothing is encrypted.
	TLS *TLS

	// SASL logs in. Default: nil, nobody logs in.
	SASL *SASL

	// Insecure lets the password of SASL's plain travel to another host without TLS. Default:
	// false, such a connection is refused when it is made, before anything is sent.
	Insecure bool

	// MaxRecordBytes is the most that a record may have, with key, headers and the frame
	// around it, before compression, and that a batch of records for one partition may
	// have. The topic's max.message.bytes should not be lower: a batch that the broker
	// refuses is sent again in halves, until the records that are too large stand alone.
	// Default: 1,000,000.
	MaxRecordBytes int

	// Timeout is how long a Deliver may take. Default: 30 seconds.
	Timeout time.Duration
}

// TLS says how brokers prove who they are, and how this program does.
type TLS struct {
	// CAFile has the certificates, in PEM, that the brokers' must be signed by. Default:
	// those of the system.
	CAFile string

	// CertFile and KeyFile are this program's certificate and its key, in PEM. Default:
	// none.
	CertFile, KeyFile string

	// ServerName is what the brokers' certificates must be for. Default: each broker's
	// host.
	ServerName string
}

// SASL is a way to log in.
type SASL struct {
	Mechanism string // plain, which shows the password on the way unless there is TLS, scram-sha-256 or scram-sha-512. Required
	User      string // Required
	Password  string // Required
}

// The limits of MaxRecordBytes: below the lower one nothing fits, and the upper one is
// what the client writes in one request.
const (
	leastRecordBytes = 1024
	mostRecordBytes  = 100 << 20
)

func (o Options) client() ([]kgo.Opt, error) {
	if len(o.Brokers) == 0 {
		return nil, errors.New("brokers are missing")
	}
	for _, broker := range o.Brokers {
		host, port, err := net.SplitHostPort(broker)
		if n, atoi := strconv.Atoi(port); err != nil || host == "" || atoi != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("broker %q must be host:port", broker)
		}
	}
	id, most := o.ClientID, o.MaxRecordBytes
	if id == "" {
		id = "tidemark"
	}
	if most == 0 {
		most = 1_000_000
	}
	if most < leastRecordBytes || most > mostRecordBytes {
		return nil, fmt.Errorf("max record bytes is %d, must be %d to %d", most, leastRecordBytes, mostRecordBytes)
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("timeout is %s, must not be negative", o.Timeout)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...),
		kgo.ClientID(id),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(50 * time.Millisecond), // ended by the flush when all records of a Deliver wait
		kgo.MaxBufferedRecords(math.MaxInt32),
		kgo.ProducerBatchMaxBytes(int32(most)),
		kgo.BrokerMaxWriteBytes(mostRecordBytes + 1<<20),
		kgo.UnknownTopicRetries(3),
		kgo.RecordRetries(8), // some ten seconds of a broker that answers "not now"
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.DisableClientMetrics(),
	}
	if o.SASL == nil {
		return options, nil
	}
	login, err := o.SASL.login()
	return append(options, login), err
}

func (s SASL) login() (kgo.Opt, error) {
	if s.User == "" || s.Password == "" {
		return nil, errors.New("sasl needs a user and a password")
	}
	switch s.Mechanism {
	case "plain":
		return kgo.SASL(plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()), nil
	case "scram-sha-256":
		return kgo.SASL(scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism()), nil
	case "scram-sha-512":
		return kgo.SASL(scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism()), nil
	}
	return nil, fmt.Errorf("sasl mechanism is %q, must be plain, scram-sha-256 or scram-sha-512", s.Mechanism)
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (o Options) dialer() (dialer, error) {
	plain := &net.Dialer{Timeout: 10 * time.Second}
	if o.TLS == nil {
		return o.inTheClear(plain.DialContext), nil
	}
	config := &tls.Config{ServerName: o.TLS.ServerName, MinVersion: tls.VersionTLS12}
	if o.TLS.CAFile != "" {
		pem, err := os.ReadFile(o.TLS.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: %s has no certificate in PEM", o.TLS.CAFile)
		}
	}
	if (o.TLS.CertFile == "") != (o.TLS.KeyFile == "") {
		return nil, errors.New("tls: a certificate and its key go together, and one of them is missing")
	}
	if o.TLS.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.TLS.CertFile, o.TLS.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return (&tls.Dialer{NetDialer: plain, Config: config}).DialContext, nil
}

// inTheClear gives up connections to other hosts, whatever name or broker led there, where the password would be shown.
func (o Options) inTheClear(dial dialer) dialer {
	if o.SASL == nil || o.SASL.Mechanism != "plain" || o.Insecure {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := loopback.Only(conn); err != nil {
			return nil, err
		}
		return conn, nil
	}
}
