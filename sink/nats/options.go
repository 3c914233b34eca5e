package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Options configure the connection to the servers.
type Options struct {
	// Servers are some servers of the cluster, as nats://host:port or tls://host:port. The client
	// asks these for the others. They must not contain a user or a password. Required.
	Servers []string

	// Name names this program to the servers. Default: tidemark.
	Name string

	// The login: a credentials file, a file with the seed of an nkey, a token, or a user with a
	// password. Set at most one of them. Default: no login.
	CredentialsFile string
	NKeyFile        string
	Token           string
	User, Password  string

	// TLS requires encryption, even if a server does not ask for it. Default: nil; then a tls://
	// server is encrypted and verified with the authorities of the system.
	TLS *TLS

	// Insecure allows a password or a token to travel to another host without TLS. Default:
	// false, the sink closes such a connection before it sends anything.
	Insecure bool

	// InboxPrefix begins the subjects of the answers. The user must be permitted to subscribe to
	// them. Default: _INBOX.
	InboxPrefix string

	// Timeout is how long a Deliver may take. Default: 30 seconds.
	Timeout time.Duration
}

// TLS configures how the servers and this program authenticate themselves.
type TLS struct {
	// CAFile is a PEM file with the authorities that sign the servers' certificates.
	// Default: those of the system.
	CAFile string

	// CertFile and KeyFile are PEM files with this program's certificate and key. Default:
	// none.
	CertFile, KeyFile string

	// ServerName is the name that the servers' certificates must be valid for. Default: the
	// host of each server.
	ServerName string
}

func (o Options) client() ([]nats.Option, error) {
	if len(o.Servers) == 0 {
		return nil, errors.New("servers are missing")
	}
	for i, server := range o.Servers {
		u, err := url.Parse(server)
		if err != nil || !slices.Contains([]string{"nats", "tls"}, u.Scheme) || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" {
			return nil, fmt.Errorf("server %d must be nats://host:port or tls://host:port", i+1) // it may hold a password
		}
		if u.User != nil {
			return nil, fmt.Errorf("server %s contains a user or a password: put them into their own fields", u.Host)
		}
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("timeout is %s, must not be negative", o.Timeout)
	}
	name := o.Name
	if name == "" {
		name = "tidemark"
	}
	options := []nats.Option{nats.Name(name)}
	if o.InboxPrefix != "" {
		if err := plain(o.InboxPrefix); err != nil {
			return nil, fmt.Errorf("inbox prefix %w", err)
		}
		options = append(options, nats.CustomInboxPrefix(o.InboxPrefix))
	}
	login, err := o.login()
	if err != nil {
		return nil, err
	}
	if o.TLS != nil {
		config, err := o.TLS.config()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Secure(config))
	}
	return append(options, login...), nil
}

func (o Options) login() ([]nats.Option, error) {
	var login []nats.Option
	if o.CredentialsFile != "" {
		if _, err := os.ReadFile(o.CredentialsFile); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
		login = append(login, nats.UserCredentials(o.CredentialsFile))
	}
	if o.NKeyFile != "" {
		key, err := nats.NkeyOptionFromSeed(o.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("nkey: %w", err)
		}
		login = append(login, key)
	}
	if o.Token != "" {
		login = append(login, nats.Token(o.Token))
	}
	if (o.User == "") != (o.Password == "") {
		return nil, errors.New("a user and a password go together, and one of them is missing")
	}
	if o.User != "" {
		login = append(login, nats.UserInfo(o.User, o.Password))
	}
	if len(login) > 1 {
		return nil, errors.New("more than one way to log in is set: use a credentials file, an nkey file, a token, or a user with a password")
	}
	return login, nil
}

func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: %s has no certificate in PEM", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("tls: a certificate and its key go together, and one of them is missing")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// showsPassword reports whether the login would travel without encryption, and Insecure does not allow that.
func (o Options) showsPassword() bool {
	return (o.Password != "" || o.Token != "") && o.TLS == nil && !o.Insecure &&
		!slices.ContainsFunc(o.Servers, func(server string) bool { return strings.HasPrefix(server, "tls:") })
}
