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

// Options configure the connection to the brokers.
type Options struct {
	// Brokers are some brokers of the cluster, as host:port. The client asks these for the
	// others. Required.
	Brokers []string

	// ClientID names this program to the brokers. Default: tidemark.
	ClientID string

	// TLS encrypts the connections. Default: nil, no encryption.
	TLS *TLS

	// SASL is the login. Default: nil, no login.
	SASL *SASL

	// Insecure allows the password of SASL's plain to travel to another host without TLS.
	// Default: false, the sink closes such a connection before it sends anything.
	Insecure bool

	// MaxRecordBytes is the largest size of a record, with key, headers and framing, before
	// compression, and of a batch of records for one partition. The topic's max.message.bytes
	// should not be lower: a batch that the broker refuses is sent again in halves, until the
	// records that are too large are alone. Range: 1,024 to 104,857,600. Default: 1,000,000.
	MaxRecordBytes int

	// Timeout is how long a Deliver may take. Default: 30 seconds.
	Timeout time.Duration
}

// TLS configures how the brokers and this program authenticate themselves.
type TLS struct {
	// CAFile is a PEM file with the authorities that sign the brokers' certificates.
	// Default: those of the system.
	CAFile string

	// CertFile and KeyFile are PEM files with this program's certificate and key. Default:
	// none.
	CertFile, KeyFile string

	// ServerName is the name that the brokers' certificates must be valid for. Default: the
	// host of each broker.
	ServerName string
}

// SASL is a login.
type SASL struct {
	Mechanism string // plain (sends the password as it is: use TLS), scram-sha-256 or scram-sha-512. Required
	User      string // Required
	Password  string // Required
}

// DefaultMaxRecordBytes is what MaxRecordBytes is by default: a broker takes 1,048,588 bytes by default.
const DefaultMaxRecordBytes = 1_000_000

// The limits of MaxRecordBytes. The upper one is the largest request that the client writes.
const (
	leastRecordBytes = 1024
	mostRecordBytes  = 100 << 20
)

// Client returns options for a client of github.com/twmb/franz-go that reaches the brokers as a [Connection] does.
func (o Options) Client() ([]kgo.Opt, error) {
	options, err := o.client()
	if err != nil {
		return nil, err
	}
	dial, err := o.dialer()
	return append(options, kgo.Dialer(dial)), err
}

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
		most = DefaultMaxRecordBytes
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
		kgo.ProducerLinger(50 * time.Millisecond), // the flush ends it once all records of a Deliver are queued
		kgo.MaxBufferedRecords(math.MaxInt32),
		kgo.ProducerBatchMaxBytes(int32(most)),
		kgo.BrokerMaxWriteBytes(mostRecordBytes + 1<<20),
		kgo.UnknownTopicRetries(3),
		kgo.RecordRetries(8), // some ten seconds with a broker that refuses for now
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

// inTheClear refuses connections to other hosts if the password would travel on them without encryption.
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
