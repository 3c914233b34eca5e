package webhook_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/sink/webhook"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	prefix := netip.MustParsePrefix
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	header := func(name, value string) webhook.Options {
		return webhook.Options{Headers: map[string]string{name: value}}
	}
	for want, o := range map[string]webhook.Options{
		"url is missing":                          {URL: "-"},
		"url cannot be read":                      {URL: "https://ann:se cret@[::1"},
		"url must begin with https:// or http://": {URL: "ftp://example.com"},
		"url has no host":                         {URL: "https://:443/x"},
		"url holds a user; put an Authorization header into headers":                              {URL: "https://ann:secret@example.com"},
		"url has a fragment (#), which is never sent":                                             {URL: "https://example.com/#"},
		"url begins with http://, which is for networks in allow only; use https://":              {URL: "http://example.com"},
		"url has port 8443, which is not 80, 443 or in ports":                                     {URL: "https://example.com:8443"},
		"url has a port that is not from 1 to 65535":                                              {URL: "https://example.com:65536"},
		"ports holds 0, must be from 1 to 65535":                                                  {Ports: []uint16{0}},
		"allow holds ::ffff:10.0.0.0/104; write it as IPv4":                                       {Allow: []netip.Prefix{prefix("::ffff:10.0.0.0/104")}},
		"allow holds an invalid network":                                                          {Allow: []netip.Prefix{{}}},
		"max response is -1, must be at least 1":                                                  {MaxResponse: -1},
		"max conns is -1, must be at least 1":                                                     {MaxConns: -1},
		`format is "xml", must be cloudevents, cloudevents-binary or json`:                        {Format: "xml"},
		"secrets are missing; to send without signatures set unsigned":                            {Secrets: []string{}},
		"unsigned is set, and so are secrets: choose one":                                         {Unsigned: true},
		"secret 1 of 1 must begin with whsec_, or with whsk_ if it is an ed25519 key":             {Secrets: []string{""}},
		"secret 2 of 2 is not base64 after its prefix":                                            {Secrets: []string{secret, "whsec_MDEy!"}},
		"secret 1 of 1 has 23 bytes, must have 24 to 64":                                          {Secrets: []string{"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="}},
		"secret 1 of 2 has 0 bytes, must have 24 to 64":                                           {Secrets: []string{"whsec_", secret}},
		"secret 1 of 1 has 24 bytes, must have 32, or 64 with the public key":                     {Secrets: []string{strings.Replace(secret, "whsec", "whsk", 1)}},
		"secret 1 of 1 has a public key that is not of its private key":                           {Secrets: []string{"whsk_" + strings.Repeat("AAAA", 21) + "AA=="}},
		"header Connection is reserved":                                                           header("Connection", "close"),
		"header proxy-authorization is reserved":                                                  header("proxy-authorization", "x"),
		"header Content-Type is reserved":                                                         header("Content-Type", "text/plain"),
		"header WEBHOOK-ID is reserved":                                                           header("WEBHOOK-ID", "1"),
		"header tidemark-x is reserved":                                                           header("tidemark-x", "1"),
		"header Idempotency-Key is reserved":                                                      header("Idempotency-Key", "1"),
		"header Host is reserved":                                                                 header("Host", "other"),
		`header "a b" is not the name of a header`:                                                header("a b", "x"),
		`header "" is not the name of a header`:                                                   header("", "x"),
		"header X-A has a control character in its value":                                         header("X-A", "secret\r\nHost: other"),
		"header x-a is there twice":                                                               {Headers: map[string]string{"X-A": "1", "x-a": "2"}},
		"ca file: open /nowhere/ca.pem: no such file or directory":                                {CAFile: "/nowhere/ca.pem"},
		"ca file: " + empty + " holds no certificate in PEM":                                      {CAFile: empty},
		"cert file and key file must be set together":                                             {CertFile: empty},
		"client certificate: tls: failed to find any PEM data in certificate input":               {CertFile: empty, KeyFile: empty},
		"url begins with http://, and client certificates and server names are for https:// only": {URL: "http://10.0.0.1", Allow: []netip.Prefix{prefix("10.0.0.0/8")}, ServerName: "x"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if o.URL = strings.TrimPrefix(o.URL, "-"); o.URL == "" && want != "url is missing" {
				o.URL = "https://example.com/hook"
			}
			if o.Secrets == nil {
				o.Secrets = []string{secret}
			}
			_, err := webhook.New(o)
			if err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

func TestNewTakes(t *testing.T) {
	t.Parallel()
	private := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, o := range map[string]webhook.Options{
		"plain":              {URL: "https://example.com"},
		"upper case":         {URL: "HTTPS://EXAMPLE.COM/x?y=%23"},
		"a port":             {URL: "https://example.com:8443", Ports: []uint16{8443}},
		"port 80 with TLS":   {URL: "https://example.com:80"},
		"a private network":  {URL: "http://hooks.internal:8080", Allow: private},
		"IPv6":               {URL: "https://[2606:4700::1111]/"},
		"64 bytes":           {URL: "https://example.com", Secrets: []string{"whsec_" + strings.Repeat("AAAA", 21) + "AA=="}},
		"other header names": {URL: "https://example.com", Headers: map[string]string{"Te-X": "1", "Webhooks": "a\tb é", "Proxies": ""}},
	} {
		if o.Secrets == nil {
			o.Secrets = []string{secret}
		}
		s, err := webhook.New(o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Limits().Batch != 1 || s.Limits().KeepsOrder {
			t.Errorf("limits %+v", s.Limits())
		}
	}
	s, err := webhook.New(webhook.Options{URL: "https://example.com", Unsigned: true})
	if s == nil || err != nil {
		t.Error(err)
	}
}

// A daemon's file of authorities applies to all its routes. A route to http:// does not read it.
func TestCAFileIsNotForHTTP(t *testing.T) {
	t.Parallel()
	made, err := webhook.New(webhook.Options{
		URL: "http://10.0.0.1", Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Unsigned: true, CAFile: "/nowhere/ca.pem",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Error(err)
	}
}
