package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Connections that send no password, or only to this host, are accepted without TLS.
func TestPasswordsOnTheWay(t *testing.T) {
	t.Parallel()
	for _, connection := range []string{
		"{kind: kafka, brokers: ['b:1'], sasl: {mechanism: PLAIN, user: u, password: p}, tls: {enabled: true}}",
		"{kind: kafka, brokers: ['b:1'], sasl: {mechanism: PLAIN, user: u, password: p}, tls: {insecure: true}}",
		"{kind: kafka, brokers: ['b:1'], sasl: {mechanism: SCRAM-SHA-512, user: u, password: p}}",
		"{kind: kafka, brokers: ['127.0.0.1:1', '[::1]:1', 'localhost:1'], sasl: {mechanism: PLAIN, user: u, password: p}}",
		"{kind: nats, url: 'tls://b,wss://c', user: u, password: p}",
		"{kind: nats, url: 'nats://b', token: t, tls: {insecure: true}}",
		"{kind: nats, url: 'nats://127.0.0.1,nats://localhost:4222', token: t}",
		"{kind: nats, url: 'nats://b', nkey_file: f}",
	} {
		mustLoad(t, "connections: {a: "+connection+"}")
	}
	mustLoad(t, "commands: {registry: {url: 'http://127.0.0.1:8081', user: u, password: p}}")
	mustLoad(t, "commands: {registry: {url: 'http://registry:8081'}}")
	mustLoad(t, "console: {url: 'https://t', oidc: {issuer: 'http://localhost:9000', client_id: c}}")
}

// Load warns of files with secrets that others can read, and of no other.
func TestReadableFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret, config := filepath.Join(dir, "secret"), filepath.Join(dir, "tidemark.yaml")
	warned := func(text string, configMode, secretMode os.FileMode) []string {
		t.Helper()
		for name, content := range map[string]string{secret: "whsec_x", config: text} {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for name, mode := range map[string]os.FileMode{secret: secretMode, config: configMode} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		c, err := Load(config, []string{"KEY=k"})
		if err != nil {
			t.Fatal(err)
		}
		return c.Warnings
	}
	refers, literal := "secrets: {a: \"${file:"+secret+"}\"}", "secrets: {a: whsec_x}"
	for _, c := range []struct {
		name, text             string
		configMode, secretMode os.FileMode
		want                   string
	}{
		{"both are closed", refers + "\n", 0o600, 0o600, ""},
		{"no secret in the configuration", refers, 0o644, 0o600, ""},
		{"a variable", "secrets: {a: \"${env:KEY}\"}", 0o644, 0o600, ""},
		{"an address without password", "database: {url: 'postgres://u@h/d'}", 0o644, 0o600, ""},
		{"not a secret", "name: \"${file:" + secret + "}\"", 0o600, 0o644, ""},
		{"the secret's file", refers, 0o600, 0o640, secret},
		{"the configuration", literal, 0o604, 0o600, config},
		{"a password in an address", "database: {url: 'postgres://u:p@h/d'}", 0o640, 0o600, config},
		{"a key", "connections: {a: {kind: nats, url: 'tls://b', nkey_file: '" + secret + "'}}", 0o600, 0o644, secret},
		{"the key of ingress", strings.ReplaceAll(ingress("127.0.0.1:0", "cert_file: c, key_file: "+secret+", client_ca_file: a, ", "shop: {certificates: [a]}"), "short: abc", "x: '${env:KEY}'"), 0o600, 0o644, secret},
	} {
		got := strings.Join(warned(c.text, c.configMode, c.secretMode), "; ")
		if c.want == "" && got != "" || c.want != "" && !strings.HasPrefix(got, "file "+c.want+" holds secrets and is readable by others (mode 06") {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
