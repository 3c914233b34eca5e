package config

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var (
	anyName = rapid.StringMatching(plainKey.String())
	// Texts that YAML or the references would take for something else are among them.
	anyText = rapid.OneOf(
		rapid.StringMatching(`[ -~]{0,12}`),
		rapid.StringMatching(`[${}:env]{0,12}`),
		rapid.SampledFrom([]string{"", "true", "null", "~", "1e3", "0x10", "2026-01-31", "- a", "*x", "&x", "!x", "#", " a ", "ä\u2028€😀", "\ufeff", "a: b", "'", `"`}),
		rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return checkText(string(r), "") == "" }), 0, 8, -1),
	)
	anyPort = rapid.IntRange(1, 65535)
	anyMax  = rapid.Map(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)), func(n int64) time.Duration { return time.Duration(n) })
)

func listOf[T any](t *rapid.T, of *rapid.Generator[T], least int, name string) []T {
	if all := rapid.SliceOfN(of, least, 6).Draw(t, name); len(all) > 0 {
		return all
	}
	return nil
}

// anyConfig is a configuration without secrets.
func anyConfig(t *rapid.T) Config {
	c := Default()
	c.Database.MaxConnections = rapid.IntRange(2, 1000).Draw(t, "max_connections")
	c.Name = anyName.Draw(t, "name")
	if workers := rapid.SliceOfNDistinct(anyName, 0, 4, rapid.ID[string]).Draw(t, "workers"); len(workers) > 0 {
		c.Workers = workers
	}
	c.Lease = time.Duration(rapid.Int64Range(int64(3*time.Second), int64(time.Hour)).Draw(t, "lease"))
	c.Poll.Max = anyMax.Draw(t, "poll.max")
	c.Poll.Min = min(anyMax.Draw(t, "poll.min"), c.Poll.Max)
	c.Batch.Max = rapid.IntRange(1, 50000).Draw(t, "batch.max")
	c.StopTimeout = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 10 * time.Minute, 61 * time.Second}).Draw(t, "stop_timeout")
	c.Admin = Admin{rapid.SampledFrom([]string{"", ":0", "[::1]:9321", "localhost:80"}).Draw(t, "listen"), rapid.Bool().Draw(t, "pprof")}
	c.Log = Log{rapid.SampledFrom([]string{"debug", "error"}).Draw(t, "level"), rapid.SampledFrom([]string{"auto", "json"}).Draw(t, "format")}
	c.Webhook = Webhook{
		Allow:  listOf(t, rapid.SampledFrom([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::/0")}), 0, "allow"),
		Ports:  listOf(t, anyPort, 0, "ports"),
		CAFile: anyText.Draw(t, "ca_file"),
	}
	for _, name := range rapid.SliceOfNDistinct(anyName, 0, 3, rapid.ID[string]).Draw(t, "connections") {
		if c.Connections == nil {
			c.Connections = map[string]Connection{}
		}
		c.Connections[name] = anyConnection(t)
	}
	return c
}

func anyConnection(t *rapid.T) Connection {
	c := Connection{Kind: "nats", URL: "nats://a:1,tls://b"}
	if rapid.Bool().Draw(t, "kafka") {
		c = Connection{Kind: "kafka", Brokers: listOf(t, rapid.Just("[::1]:9092"), 1, "brokers")}
	} else if rapid.Bool().Draw(t, "file") {
		c.NKeyFile = anyText.Draw(t, "nkey_file")
	}
	if rapid.Bool().Draw(t, "tls") {
		c.TLS = TLS{Enabled: true, CAFile: anyText.Draw(t, "tls.ca_file"), ServerName: anyText.Draw(t, "server_name")}
	}
	return c
}

func TestPrintedConfigurationsLoadAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyConfig(t)
		text, err := want.Print()
		if err != nil {
			t.Fatal(err)
		}
		got, err := load("f.yaml", text, []string{"env=x"}, "another")
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		if diff := cmp.Diff(want, got, compare); diff != "" {
			t.Fatalf("%s\n%s", text, diff)
		}
	})
}

func TestPrintKeepsReferences(t *testing.T) {
	t.Parallel()
	text := `database:
  url: postgres://u:${env:PASSWORD}@h/d
name: shop-${env:NUMBER}
batch: {max: "${env:NUMBER}"}
lease: ${env:LEASE}
webhook: {allow: ["${env:NET}"], ports: ["${env:NUMBER}"], ca_file: "$${x}${env:NUMBER}"}
secrets:
  a: [plain, "${env:PASSWORD}"]
  b: ${env:PASSWORD}
  c: plain
connections: {main: {kind: nats, url: "nats://${env:NUMBER}", token: plain, tls: {insecure: true}}}
`
	environ := []string{"PASSWORD=hidden", "NUMBER=77", "LEASE=10m", "NET=10.0.0.0/8", "TIDEMARK_DATABASE_DIRECT_URL=host=hidden"}
	printed, err := mustLoad(t, text, environ...).Print()
	if err != nil {
		t.Fatal(err)
	}
	want := `database:
  url: '***${env:PASSWORD}***'
  direct_url: '***'
  max_connections: 10
name: shop-${env:NUMBER}
workers: []
lease: ${env:LEASE}
poll:
  min: 10ms
  max: 1s
batch:
  max: ${env:NUMBER}
stop_timeout: 20s
admin:
  listen: 127.0.0.1:9321
  pprof: false
log:
  level: info
  format: auto
secrets:
  a: ['***', '${env:PASSWORD}']
  b: ${env:PASSWORD}
  c: ['***']
oauth2: {}
webhook:
  allow: ['${env:NET}']
  ports: ['${env:NUMBER}']
  ca_file: $${x}${env:NUMBER}
connections:
  main:
    kind: nats
    url: nats://${env:NUMBER}
    token: '***'
    tls:
      insecure: true
ping:
  url: ""
  every: 1m
commands:
  connection: ""
  topics: [db-events.*, db-events]
  group: ""
  cluster: ""
  results: db-results.*
  dead_letters: db-dlq.*
  batch: 50
  in_flight: 1000
  ingress:
    listen: ""
console:
  listen: ""
  url: ""
  database_url: ""
  read_only: false
  session_key: ""
  users: {}
  tokens: {}
  oidc: {}
  proxy: {}
`
	if diff := cmp.Diff(want, string(printed)); diff != "" {
		t.Error(diff)
	}
}

func TestShortDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 61 * time.Second: "1m1s",
		time.Hour + time.Second: "1h0m1s", 20 * time.Minute: "20m", 10 * time.Second: "10s", 1500 * time.Millisecond: "1.5s",
	} {
		if got := short(d); got != want {
			t.Errorf("%s gives %s", d, got)
		}
	}
	if !strings.HasSuffix(short(time.Minute), "m") {
		t.Error("minutes")
	}
}
