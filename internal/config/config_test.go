package config

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compare = cmp.Options{cmpopts.IgnoreUnexported(Config{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, text string, environ ...string) Config {
	t.Helper()
	c, err := load("f.yaml", []byte(text), environ, "host")
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c
}

func TestNothingGivesTheDefaults(t *testing.T) {
	t.Parallel()
	want := Default()
	want.Name = "host"
	for _, text := range []string{"", "# nothing\n", "---\n", "database:\nworkers:\nsecrets:\nconnections:\nadmin: {}\nwebhook: {allow: }\n"} {
		if diff := cmp.Diff(want, mustLoad(t, text), compare); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

const example = `
database:
  url: ${env:PG}
  direct_url: "host=db dbname=shop"
  max_connections: 20
name: shop-1
workers: [default, billing]
lease: 1m30s
poll: {min: 20ms, max: 2s}
batch: {max: 50000}
stop_timeout: 0s
admin: {listen: ":0", pprof: false}
log: {level: debug, format: text}
secrets:
  billing: ["${env:KEY}", plain]
  other: ${env:KEY}-and-more
  shop-token: 0123456789abcdef0123456789abcdef
webhook:
  allow: ["127.0.0.1/32", "fd00::/8"]
  ports: [8080, "${env:PORT}"]
  ca_file: /etc/ca.pem
connections:
  main:
    kind: kafka
    brokers: ["kafka-1:9092", "[::1]:9092"]
    tls: {enabled: true, ca_file: ca, cert_file: cert, key_file: key, server_name: kafka}
    sasl: {mechanism: SCRAM-SHA-256, user: tidemark, password: "$${x}"}
  bus: {kind: nats, url: "nats://a:4222,tls://b", token: t, tls: {insecure: true}}
ping: {url: "https://p/${env:TOPIC}", every: 30s}
commands: {connection: main, topics: ["shop.*", "${env:TOPIC}"], group: g, cluster: prod, results: answers, dead_letters: "dead.*", batch: 8, in_flight: 16, protocol: consumer,
  registry: {url: "https://registry", user: tidemark, password: r, ca_file: ca},
  ingress: {listen: "[::]:9443", cert_file: cert, key_file: key, client_ca_file: ca, producers: {shop: {secret: shop-token, certificates: [shop.internal]}}}}
`

func TestEverythingIsRead(t *testing.T) {
	t.Parallel()
	want := Config{
		Database:    Database{URL: NewSecret("postgres://u:p@h/d"), DirectURL: NewSecret("host=db dbname=shop"), MaxConnections: 20},
		Name:        "shop-1",
		Workers:     []string{"default", "billing"},
		Lease:       90 * time.Second,
		Poll:        Poll{20 * time.Millisecond, 2 * time.Second},
		Batch:       Batch{50000},
		StopTimeout: 0,
		Admin:       Admin{Listen: ":0"},
		Log:         Log{"debug", "text"},
		Secrets: map[string][]Secret{
			"billing": {NewSecret("k"), NewSecret("plain")},
			"other":   {NewSecret("k-and-more")},

			"shop-token": {NewSecret("0123456789abcdef0123456789abcdef")},
		},
		Ping: Ping{URL: NewSecret("https://p/all"), Every: 30 * time.Second},
		Webhook: Webhook{
			Allow:  []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("fd00::/8")},
			Ports:  []int{8080, 8443},
			CAFile: "/etc/ca.pem",
		},
		Connections: map[string]Connection{
			"main": {
				Kind: "kafka", Brokers: []string{"kafka-1:9092", "[::1]:9092"},
				TLS:  TLS{true, false, "ca", "cert", "key", "kafka"},
				SASL: SASL{"SCRAM-SHA-256", "tidemark", NewSecret("${x}")},
			},
			"bus": {Kind: "nats", URL: "nats://a:4222,tls://b", Token: NewSecret("t"), TLS: TLS{Insecure: true}},
		},
		Commands: Commands{"main", []string{"shop.*", "all"}, "g", "prod", "answers", "dead.*", 8, 16, "consumer", Registry{"https://registry", "tidemark", NewSecret("r"), "ca"}, Ingress{
			"[::]:9443", "cert", "key", "ca", false, map[string]IngressProducer{"shop": {"shop-token", []string{"shop.internal"}}},
		}},
	}
	got, err := Load(write(t, example), []string{"PG=postgres://u:p@h/d", "KEY=k", "PORT=8443", "TOPIC=all"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Error(diff)
	}
}

func TestTheEnvironmentGoesBeforeTheFile(t *testing.T) {
	t.Parallel()
	text := "database: {url: '${env:MISSING}'}\nlease: forever\nadmin: {pprof: true}\n"
	c := mustLoad(t, text,
		"TIDEMARK_DATABASE_URL=host=x password=${env:A}", "TIDEMARK_LEASE=5s", "TIDEMARK_ADMIN_PPROF=false",
		"TIDEMARK_BATCH_MAX=7", "TIDEMARK_LOG_LEVEL=", "DATABASE_URL=host=y", "TIDEMARK_CONFIG=z")
	if c.Database.URL.Reveal() != "host=x password=${env:A}" || c.Lease != 5*time.Second || c.Admin.Pprof || c.Batch.Max != 7 || c.Log.Level != "info" {
		t.Errorf("%+v, %q", c, c.Database.URL.Reveal())
	}
	if len(c.Warnings) > 0 {
		t.Error(c.Warnings)
	}
}

func TestDatabaseURLIsTheLastResort(t *testing.T) {
	t.Parallel()
	if c := mustLoad(t, "database: {url: host=x}", "DATABASE_URL=host=y"); c.Database.URL.Reveal() != "host=x" {
		t.Error("goes before the file")
	}
	if c := mustLoad(t, "", "DATABASE_URL=host=y"); c.Database.URL.Reveal() != "host=y" {
		t.Error("is passed over")
	}
	text, err := mustLoad(t, "database: {url: '${env:EMPTY}'}", "DATABASE_URL=host=y", "EMPTY=").Print()
	if err != nil || !strings.Contains(string(text), "url: '***'") {
		t.Errorf("is printed as another: %s %v", text, err)
	}
	_, err = load("f.yaml", nil, []string{"DATABASE_URL=mysql://x"}, "host")
	if err == nil || err.Error() != "DATABASE_URL: database.url: must be a postgres:// URL (an @ is %40 but for the one before the host; in a password / is %2F and ? is %3F), or key=value pairs such as host=… dbname=…" {
		t.Error(err)
	}
}

func TestUnknownVariablesAreWarnings(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "connections: {main: {kind: nats, url: 'nats://a'}}", "TIDEMARK_LEESE=5s", "TIDEMARK_WORKERS=a", "TIDEMARK_ADMIN=x", "TIDEMARK_PORT=tcp://10.0.0.1:9321",
		"TIDEMARK_CONNECTIONS_MAIN_KIND=kafka", "OTHER=1", "TIDEMARK_TEST_URL=")
	want := []string{
		"variable TIDEMARK_ADMIN is unknown; did you mean TIDEMARK_ADMIN_LISTEN?",
		"variable TIDEMARK_CONNECTIONS_MAIN_KIND is unknown",
		"variable TIDEMARK_LEESE is unknown; did you mean TIDEMARK_LEASE?",
		"variable TIDEMARK_PORT is unknown",
		"variable TIDEMARK_TEST_URL is unknown",
		"variable TIDEMARK_WORKERS is ignored: only the file can set workers",
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" || c.Connections["main"].Kind != "nats" {
		t.Error(diff, c)
	}
}

// A variable may hold what YAML may not, and what could not be printed.
func TestVariablesAreText(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"\xff", "a\x00b", "a\nb"} {
		_, err := load("f.yaml", nil, []string{"TIDEMARK_WEBHOOK_CA_FILE=" + value}, "host")
		if err == nil || err.Error() != "TIDEMARK_WEBHOOK_CA_FILE: webhook.ca_file: must be one line of text" {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// Two keys with one variable would be set together.
func TestEachKeyHasAVariableOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]string{FileVariable: "the path"}
	for path := range configKeys {
		if other := seen[variableOf(path)]; other != "" {
			t.Errorf("%s and %s", path, other)
		}
		seen[variableOf(path)] = path
	}
}

func TestReferencesToFiles(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"key": "key", "key\n": "key", "key\r\n": "key", "key\n\n": "key\n", " k ${env:A} ": " k ${env:A} "} {
		path := write(t, content)
		c := mustLoad(t, "secrets: {a: '${file:"+path+"}', b: ['<${file:"+path+"}>']}")
		if got := c.Secrets["a"][0].Reveal(); got != want {
			t.Errorf("%q gives %q", content, got)
		}
		if got := c.Secrets["b"][0].Reveal(); got != "<"+want+">" {
			t.Errorf("%q gives %q", content, got)
		}
	}
	for path, want := range map[string]string{
		"/nowhere/key": "no such file or directory",
		t.TempDir():    "it is not a regular file",
		"/dev/zero":    "it is not a regular file",
		write(t, strings.Repeat("x", mostBytes+1)):  "it is larger than 1 MiB",
		write(t, "")[:1] + strings.Repeat("x", 300): "file name too long",
	} {
		_, err := load("f.yaml", []byte("secrets: {a: '${file:"+path+"}'}"), nil, "host")
		if err == nil || err.Error() != "f.yaml:1: secrets.a: file "+path+" cannot be read: "+want {
			t.Error(err)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	var problems *Error
	for path, want := range map[string]string{
		"/nowhere/f.yaml": "no such file or directory",
		t.TempDir():       "is a directory",
		write(t, strings.Repeat("#", mostBytes+1)): "it is larger than 1 MiB",
	} {
		_, err := Load(path, nil)
		if !errors.As(err, &problems) || err.Error() != path+": cannot be read: "+want {
			t.Error(err)
		}
	}
}

func TestNameOfTheHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"": "tidemark", "web-1.example.com": "web-1.example.com", "büro": "b-ro", "-x": "x",
		strings.Repeat("a", 64): strings.Repeat("a", 63),
	} {
		if got := plainName(host); got != want || !plainKey.MatchString(got) {
			t.Errorf("%q gives %q", host, got)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := Load("", nil); err != nil || c.Name != plainName(host) {
		t.Error(c.Name, err)
	}
}

// What the driver would print is refused, and what has no password is not.
func TestSplitsPassword(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"postgres://u:p@h/d": false, "postgres://u@h/d": false, "postgres://h/a@b": false, "postgres://h:5432/d": false, "postgres:///d?host=/run": false,
		"postgres://u:p%40ss@h/x?application_name=a@b": false, "postgres://h/d?user=a@b": false, "postgres://h": false, "host=h password=a@b": false,
		"postgres://u:p@ss@h/d": true, "postgres://u:p@s/s@h/d": true, "postgres://u:12/s@h/d": true, "postgres://u:12/s?x@h/d": true,
		"postgres://u:12/s?a=x@h/d": true, "postgres://u:12?s@h/d": true, "postgres://u:p@s?x@h/d": true, "postgres://u:12#s@h/d": true, "postgres://u:p/s@h": true,
		"postgres://db:5432/shop?user=app@tenant": false, "postgres://h1:5432,h2:5432/d?sslrootcert=/pki/a@b.pem": false,
		"postgres://[::1]/d?application_name=a@b": false, "postgres://[::1]:5432/a@b": false, "postgres://u:p@[::1]:5432/d?user=a@b": false,
		"postgres://u:p@h?application_name=a@b": false, "postgres://u@h/a@b": false, "postgres://h/d?sslmode=require&password=a@b": false,
		"postgres://h:5432/a@b": true, "postgres://u@h:5432/a@b": true, "postgres://app:12/ssw0rd?x@db/y": true, "postgres://app:12/ssw0rd?a=x@db/y": true,
		"postgres://u:p@s/t?x@h/d": true, "postgres://u:p@s/t?user=a&x@h/d": true, "postgres://u:[::1]/s@h/d": true,
	} {
		if got := SplitsPassword(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
