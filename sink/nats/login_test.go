package nats_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	tidemarknats "github.com/tidemarkhq/tidemark/sink/nats"
)

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// userKey returns a user's public key, and a file with its seed.
func userKey(t *testing.T) (public, file string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return public, file
}

func TestLogin(t *testing.T) {
	t.Parallel()
	nkey, file := userKey(t)
	for name, test := range map[string]struct {
		server       func(*server.Options)
		plain        nats.Option
		right, wrong tidemarknats.Options
	}{
		"password": {
			func(o *server.Options) { o.Username, o.Password = "u", "right" },
			nats.UserInfo("u", "right"),
			tidemarknats.Options{User: "u", Password: "right"},
			tidemarknats.Options{User: "u", Password: "wr0ng"},
		},
		"token": {
			func(o *server.Options) { o.Authorization = "right" },
			nats.Token("right"),
			tidemarknats.Options{Token: "right"},
			tidemarknats.Options{Token: "wr0ng"},
		},
		"nkey": {
			func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: nkey}} },
			nil,
			tidemarknats.Options{NKeyFile: file},
			tidemarknats.Options{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, test.server)
			if test.plain == nil {
				var err error
				if test.plain, err = nats.NkeyOptionFromSeed(file); err != nil {
					t.Fatal(err)
				}
			}
			stream(t, client(t, s, test.plain), nil)
			test.right.Servers, test.wrong.Servers = []string{s.ClientURL()}, []string{s.ClientURL()}
			if got := outcomes(target(t, test.right).Deliver(t.Context(), batch(1, 2))); got["delivered"] != 2 {
				t.Errorf("right: got %v", got)
			}
			results := target(t, test.wrong).Deliver(t.Context(), batch(3, 2))
			if got := outcomes(results); got["retry not_authorized refused"] != 2 {
				t.Errorf("wrong: got %v %+v", got, results[0])
			}
			if strings.Contains(results[0].Detail, "wr0ng") || strings.Contains(results[0].Detail, "\n") {
				t.Errorf("detail %q", results[0].Detail)
			}
		})
	}
}

// The server drops a message that may not be published, and reports it only as an error of the connection.
func TestPermissions(t *testing.T) {
	t.Parallel()
	for want, permissions := range map[string]*server.Permissions{
		"retry not_authorized refused": {Publish: &server.SubjectPermission{Deny: []string{subject}}},
		"unknown not_authorized":       {Subscribe: &server.SubjectPermission{Deny: []string{"_INBOX.>"}}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *server.Options) {
				o.Users = []*server.User{{Username: "admin", Password: "a"}, {Username: "u", Password: "p", Permissions: permissions}}
			})
			stream(t, client(t, s, nats.UserInfo("admin", "a")), nil)
			target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}, User: "u", Password: "p", Timeout: soon})
			begin := time.Now()
			results := target.Deliver(t.Context(), batch(1, 3))
			if got := outcomes(results); got[want] != 3 {
				t.Errorf("got %v %+v", got, results[0])
			}
			if took := time.Since(begin); took > soon/2 {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestInboxPrefix(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "admin", Password: "a"}, {Username: "u", Password: "p", Permissions: &server.Permissions{
			Subscribe: &server.SubjectPermission{Allow: []string{"answers.u.>"}},
		}}}
	})
	stream(t, client(t, s, nats.UserInfo("admin", "a")), nil)
	target := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}, User: "u", Password: "p", InboxPrefix: "answers.u"})
	if got := outcomes(target.Deliver(t.Context(), batch(1, 3))); got["delivered"] != 3 {
		t.Error(got)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	pair, file := certificate(t, "nats.example.com")
	s := start(t, func(o *server.Options) {
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		o.TLSTimeout = soon.Seconds()
	})
	stream(t, client(t, s, nats.RootCAs(file), nats.Secure(&tls.Config{ServerName: "nats.example.com", MinVersion: tls.VersionTLS12}), nats.RootCAs(file)), nil)
	for name, test := range map[string]struct {
		tls  *tidemarknats.TLS
		want string
	}{
		"right":              {&tidemarknats.TLS{CAFile: file, ServerName: "nats.example.com"}, "delivered"},
		"wrong name":         {&tidemarknats.TLS{CAFile: file, ServerName: "other.example.com"}, "retry connect"},
		"unknown authority":  {&tidemarknats.TLS{ServerName: "nats.example.com"}, "retry connect"},
		"with a certificate": {&tidemarknats.TLS{CAFile: file, ServerName: "nats.example.com", CertFile: file, KeyFile: file}, "delivered"},
	} {
		results := target(t, tidemarknats.Options{Servers: []string{s.ClientURL()}, TLS: test.tls}).Deliver(t.Context(), batch(1, 1))
		if got := outcomes(results); got[test.want] != 1 {
			t.Errorf("%s: got %+v", name, results[0])
		}
		if test.want != "delivered" && !strings.Contains(results[0].Detail, "certificate") {
			t.Errorf("%s: detail %q", name, results[0].Detail)
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
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
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
	file := filepath.Join(t.TempDir(), "server.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	return pair, file
}

func TestDialRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	one := []string{"nats://nats.example.com:4222"}
	const oneLogin = `more than one way to log in is set: use a credentials file, an nkey file, a token, or a user with a password`
	for want, o := range map[string]tidemarknats.Options{
		`servers are missing`: {},
		`server 2 must be nats://host:port or tls://host:port`:                     {Servers: []string{one[0], "u:s3cret@a"}},
		`server 1 must be nats://host:port or tls://host:port`:                     {Servers: []string{"http://a:1"}},
		`server a:1 contains a user or a password: put them into their own fields`: {Servers: []string{"nats://u:s3cret@a:1"}},
		`timeout is -1s, must not be negative`:                                     {Servers: one, Timeout: -time.Second},
		`inbox prefix "a.*" must have no wildcards, "*" and ">"`:                   {Servers: one, InboxPrefix: "a.*"},
		`a user and a password go together, and one of them is missing`:            {Servers: one, User: "u"},
		oneLogin: {Servers: one, User: "u", Password: "s3cret", Token: "s3cret"},
		`credentials: open ` + file + `.not: no such file or directory`:          {Servers: one, CredentialsFile: file + ".not"},
		`nkey: nkeys: no nkey seed found`:                                        {Servers: one, NKeyFile: file},
		`tls: ` + file + ` has no certificate in PEM`:                            {Servers: one, TLS: &tidemarknats.TLS{CAFile: file}},
		`tls: a certificate and its key go together, and one of them is missing`: {Servers: one, TLS: &tidemarknats.TLS{KeyFile: file}},
		`tls: tls: failed to find any PEM data in certificate input`:             {Servers: one, TLS: &tidemarknats.TLS{CertFile: file, KeyFile: file}},
	} {
		_, err := tidemarknats.Dial(o)
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestSinkRefuses(t *testing.T) {
	t.Parallel()
	connection := dial(t, tidemarknats.Options{Servers: []string{"nats://127.0.0.1:1"}})
	for subject, want := range map[string]string{
		"":          `subject "" must have 1 to 255 bytes`,
		"a b":       `subject "a b" must have no spaces and no control characters`,
		"a\n":       `subject "a\n" must have no spaces and no control characters`,
		"a.*":       `subject "a.*" must have no wildcards, "*" and ">"`,
		"a.>":       `subject "a.>" must have no wildcards, "*" and ">"`,
		".a":        `subject ".a" must have something before and after each dot`,
		"a..b":      `subject "a..b" must have something before and after each dot`,
		"a.":        `subject "a." must have something before and after each dot`,
		"$JS.API.x": `subject "$JS.API.x" must not begin with "$", by which servers are managed`,
	} {
		if _, err := connection.Sink(subject, ""); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if _, err := connection.Sink("a", "xml"); err == nil || !strings.Contains(err.Error(), `format is "xml"`) {
		t.Errorf("got %v", err)
	}
	if got, err := connection.Sink("a", ""); err != nil || got.Limits().KeepsOrder || got.Limits().Batch < 1 {
		t.Errorf("got %v %v", got, err)
	}
}
