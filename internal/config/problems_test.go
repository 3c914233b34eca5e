package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	someToken       = "0123456789abcdef0123456789abcdef"
	kafkaConnection = "connections:\n  a: {kind: kafka, brokers: ['b:1']}\n"
)

// ingress is a file with producers.
func ingress(listen, more, producers string) string {
	return "secrets: {t: " + someToken + ", short: abc}\n" + kafkaConnection + "commands: {connection: a, ingress: {listen: '" + listen + "', " + more + "producers: {" + producers + "}}}"
}

// Each is a file, and what Load says of it without the name of the file.
var bad = []struct{ text, want string }{
	// Keys.
	{"admin:\n  lisen: x", "2: admin.lisen: unknown key; did you mean listen?"},
	{"maxConnections: 3", "1: maxConnections: unknown key; did you mean database.max_connections?"},
	{"database: {max-connections: 3}", "1: database.max-connections: unknown key; did you mean max_connections?"},
	{"database: {max: 3}", "1: database.max: unknown key; did you mean max_connections?"},
	{"colour: red", "1: colour: unknown key"},
	{"lease: 5s\nlease: 6s", "2: lease: is a duplicate: first in line 1"},
	{"admin: {pprof: true, pprof: true}", "1: admin.pprof: is a duplicate: first in line 1"},
	{"base: &b {min: 1s}\npoll:\n  <<: *b", "1: base: unknown key; 3: poll.<<: merge keys are not supported: write the keys out"},
	{"connections: {bus: {kind: nats, url: 'nats://a', token:x}}", "1: connections.bus: has an unknown key; is a space missing after a colon?"},
	{"admin: {a b: 1, a b: 1}", "1: admin: has a duplicate key; 1: admin: has an unknown key; is a space missing after a colon?"},
	{"? [a]\n: b", "1: has a key that is not text"},
	{"secrets: {a/b: x}", "1: secrets: has a name that is not plain: " + plainForm},

	// Types.
	{"- a", "1: must be keys with values"},
	{"admin: yes", "1: admin: must be keys with values"},
	{"workers: default", "1: workers: must be a list"},
	{"workers: [[a]]", "1: workers[0]: must be text; put quotes around it"},
	{"name: 5", "1: name: must be text; put quotes around it"},
	{"name:", "1: name: has no value: give it one, or leave the key out"},
	{"admin: {listen: {host: x}}", "1: admin.listen: must be text; put quotes around it"},
	{"admin: {pprof: yes}", "1: admin.pprof: must be true or false"},
	{"admin: {pprof: '${env:YES}'}", "1: admin.pprof: must be true or false"},
	{"batch: {max: '10'}", "1: batch.max: must be a whole number"},
	{"batch: {max: 1.5}", "1: batch.max: must be a whole number"},
	{"batch: {max: 0x10}", "1: batch.max: must be a whole number"},
	{"batch: {max: 010}", "1: batch.max: must be a whole number"},
	{"batch: {max: 99999999999999999999}", "1: batch.max: must be a whole number"},
	{"batch: {max: '${env:YES}'}", "1: batch.max: must be a whole number"},
	{"lease: 30", "1: lease: must be a duration with its unit, such as 30s or 10ms"},
	{"lease: soon", "1: lease: must be a duration with its unit, such as 30s or 10ms"},
	{"name: \"a\\nb\"", "1: name: must be one line of text; "},
	{"webhook: {ca_file: \"a\\nb\"}", "1: webhook.ca_file: must be one line of text"},

	// Ranges and forms.
	{"lease: 2s", "1: lease: must be from 3s to 1h"},
	{"lease: 1h1ns", "1: lease: must be from 3s to 1h"},
	{"stop_timeout: -1s", "1: stop_timeout: must be from 0s to 10m"},
	{"batch: {max: 0}", "1: batch.max: must be from 1 to 50000"},
	{"batch: {max: 50001}", "1: batch.max: must be from 1 to 50000"},
	{"database: {max_connections: 1}", "1: database.max_connections: must be from 2 to 1000"},
	{"webhook: {ports: [80, 0, 65536]}", "1: webhook.ports[1]: must be from 1 to 65535; 1: webhook.ports[2]: must be from 1 to 65535"},
	{"poll: {min: 2s}", "1: poll.min: must not be above poll.max"},
	{"poll: {min: 0s}", "1: poll.min: must be from 1ms to 1m"},
	{"log: {level: INFO}", "1: log.level: must be one of debug, info, warn, error"},
	{"log: {format: ''}", "1: log.format: must be one of auto, json, text"},
	{"name: -x", "1: name: must be a plain name: " + plainForm},
	{"workers: [a, '', a]", "1: workers[1]: is empty; 1: workers[2]: is a duplicate"},
	{"workers: ['a b']", "1: workers[0]: must be a plain name: " + plainForm},
	{"database: {url: 'mysql://x'}", "1: database.url: must be a postgres:// URL (an @ is %40 but for the one before the host; in a password / is %2F and ? is %3F), or key=value pairs such as host=… dbname=…"},
	{"database: {url: 'postgres://u:p@ss@h/d'}", "1: database.url: must be a postgres:// URL (an @ is %40 but for the one before the host; in a password / is %2F and ? is %3F), or key=value pairs such as host=… dbname=…"},
	{"database: {direct_url: shop}", "1: database.direct_url: must be a postgres:// URL (an @ is %40 but for the one before the host; in a password / is %2F and ? is %3F), or key=value pairs such as host=… dbname=…"},
	{"admin: {listen: '9321'}", "1: admin.listen: must be HOST:PORT, such as 127.0.0.1:9321 or :9321"},
	{"admin: {listen: '127.0.0.1:65536'}", "1: admin.listen: must be HOST:PORT, such as 127.0.0.1:9321 or :9321"},
	{"admin: {listen: 'http://x:1'}", "1: admin.listen: must be HOST:PORT, such as 127.0.0.1:9321 or :9321"},
	{"webhook: {allow: [127.0.0.1]}", "1: webhook.allow[0]: must be a network such as 10.1.0.0/16; a single address needs /32 or, for IPv6, /128"},
	{"webhook: {allow: [10.0.0.1/8]}", "1: webhook.allow[0]: must be a network: the bits after the first 8 must be 0"},
	{"webhook: {allow: [10.0.0.0/33]}", "1: webhook.allow[0]: must be a network such as 10.1.0.0/16"},

	// References.
	{"name: '${env:MISSING}'", "1: name: variable MISSING is not set"},
	{"name: '${env:a b}'", "1: name: has an unknown reference: write ${env:NAME} or ${file:/path}, or $${ for a plain ${"},
	{"name: '${file:key}'", "1: name: has an unknown reference: write ${env:NAME} or ${file:/path}, or $${ for a plain ${"},
	{"name: '${HOME}'", "1: name: has an unknown reference: write ${env:NAME} or ${file:/path}, or $${ for a plain ${"},
	{"name: 'x${env:YES'", "1: name: has a reference without }; write $${ for a plain ${"},

	// Secrets.
	{"secrets: {a: ''}", "1: secrets.a: is empty"},
	{"secrets: {a: '${env:EMPTY}'}", "1: secrets.a: is empty"},
	{"secrets: {a: []}", "1: secrets.a: is empty"},
	{"secrets: {a: [x, '']}", "1: secrets.a[1]: is empty"},
	{"secrets: {a: {b: c}}", "1: secrets.a: must be a list"},
	{"secrets: {a: }", "1: secrets.a: has no value: give it one, or leave the key out"},
	{"secrets: {a: '***'}", "1: secrets.a: is redacted: config print does not print secrets"},
	{"secrets: {a: 12}", "1: secrets.a: must be text; put quotes around it"},
	{"secrets: {a.b: ['']}", `1: secrets."a.b"[0]: is empty`},

	// YAML.
	{"lease: 5s\na: b: c", "2: is not YAML: mapping values are not allowed in this context"},
	{"lease: 5s\nsecrets: {a: ${env:YES}}", "2: is not YAML: did not find expected ',' or '}'"},
	{"lease: 5s\n\nworkers: [a\nname: b", "3: is not YAML: did not find expected ',' or ']'"},
	{"name: [", "1: is not YAML: did not find expected node content"},
	{"secrets: {a: *hidden}", "is not YAML: texts that begin with one of * & ! need quotes"},
	{"secrets: {a: !!int hidden}", "1: secrets.a: must be text; put quotes around it"},
	{"a: 1\n---\nb: 2", "2: is a second document: only one is allowed"},
	{"lease: 5s\n--- [", "2: is not YAML: did not find expected node content"},
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, test := range append(bad, badConnections...) {
		_, err := load("f.yaml", []byte(test.text), []string{"YES=yes", "EMPTY="}, "host")
		var want []string
		for one := range strings.SplitSeq(strings.TrimSuffix(test.want, "; "), "; ") {
			switch {
			case one[0] >= '0' && one[0] <= '9':
				want = append(want, "f.yaml:"+one)
			case len(want) == 0:
				want = append(want, "f.yaml: "+one)
			default:
				want[len(want)-1] += "; " + one
			}
		}
		if err == nil {
			t.Errorf("%s\nis fine, want %s", test.text, test.want)
		} else if diff := cmp.Diff(strings.Join(want, "\n"), err.Error()); diff != "" {
			t.Errorf("%s\n%s", test.text, diff)
		}
	}
}

var badConnections = []struct{ text, want string }{
	{"connections: {a: kafka}", "1: connections.a: must be keys with values"},
	{"connections: {a: {}}", "1: connections.a.kind: is required: kafka or nats"},
	{"connections: {a: {kind: amqp}}", "1: connections.a.kind: must be one of kafka, nats"},
	{"connections: {a: {kind: kafka}}", "1: connections.a.brokers: is required: a list of HOST:PORT"},
	{"connections: {a: {kind: kafka, brokers: [b]}}", "1: connections.a.brokers[0]: must be HOST:PORT, such as kafka-1.example.com:9092"},
	{"connections: {a: {kind: kafka, brokers: ['b:0', ':1']}}", "1: connections.a.brokers[0]: must be HOST:PORT, such as kafka-1.example.com:9092; 1: connections.a.brokers[1]: must be HOST:PORT, such as kafka-1.example.com:9092"},
	{"connections:\n  a:\n    kind: kafka\n    brokers: ['b:1']\n    url: x\n    token: y", "5: connections.a.url: must be a nats:// or tls:// URL with a host, several with commas between them, and no user or password in it; 5: connections.a.url: is for the kind nats, and this is kafka; 6: connections.a.token: is for the kind nats, and this is kafka"},
	{"connections: {a: {kind: kafka, brokers: ['b:1'], sasl: {user: u}}}", "1: connections.a.sasl.mechanism: is required: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; 1: connections.a.sasl.password: is required"},
	{"connections: {a: {kind: kafka, brokers: ['b:1'], sasl: {mechanism: plain, user: u, password: p}}}", "1: connections.a.sasl.mechanism: must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"},
	{"connections: {a: {kind: kafka, brokers: ['b:1'], sasl: {mechanism: PLAIN, user: u, password: '${env:EMPTY}'}}}", "1: connections.a.sasl.password: is empty"},
	{"connections: {a: {kind: kafka, brokers: ['127.0.0.1:1', 'b:1'], sasl: {mechanism: PLAIN, user: u, password: p}}}", "1: connections.a.sasl: the password would be sent unencrypted to another host: add tls: {enabled: true}, or allow it with tls: {insecure: true}"},
	{"connections: {a: {kind: nats, url: 'nats://localhost,nats://b', user: u, password: p}}", "1: connections.a.password: would be sent unencrypted to another host: add tls: {enabled: true}, or allow it with tls: {insecure: true}"},
	{"connections: {a: {kind: nats, url: 'ws://b', token: t}}", "1: connections.a.token: would be sent unencrypted to another host: add tls: {enabled: true}, or allow it with tls: {insecure: true}"},
	{"connections: {a: {kind: nats, url: 'nats://b', tls: {enabled: true, insecure: true}}}", "1: connections.a.tls.insecure: is for connections without TLS, and enabled is true: remove one of them"},
	{"oauth2: {a: {token_url: 'https://u@b', client_id: c, client_secret: s}}", "1: oauth2.a.token_url: must be an https:// or http:// URL with a host, and no user, password or fragment in it"},
	{"oauth2: {a: {scopes: [x]}}", "1: oauth2.a.client_id: is required; 1: oauth2.a.client_secret: is required; 1: oauth2.a.token_url: is required, such as https://login.example.com/oauth2/token"},
	{"secrets: {a: b}\noauth2: {a: {token_url: 'https://b', client_id: c, client_secret: s, client_auth: x}}", "2: oauth2.a: has the name of a secret: rename one of them; 2: oauth2.a.client_auth: must be one of basic, post"},
	{"connections: {a: {kind: kafka, brokers: ['b:1'], tls: {ca_file: f}}}", "1: connections.a.tls.enabled: is required to be true, since tls has more keys"},
	{"connections: {a: {kind: kafka, brokers: ['b:1'], tls: {enabled: true, cert_file: f}}}", "1: connections.a.tls.key_file: is required with cert_file"},
	{"connections: {a: {kind: kafka, brokers: ['b:1'], tls: {enabled: true, key_file: f}}}", "1: connections.a.tls.cert_file: is required with key_file"},
	{"connections: {a: {kind: nats, brokers: ['b:1']}}", "1: connections.a.brokers: is for the kind kafka, and this is nats; 1: connections.a.url: is required, such as nats://nats.example.com:4222"},
	{"connections: {a: {kind: nats, url: 'nats://u:p@b'}}", "1: connections.a.url: must be a nats:// or tls:// URL with a host, several with commas between them, and no user or password in it"},
	{"connections: {a: {kind: nats, url: 'nats://b,http://c'}}", "1: connections.a.url: must be a nats:// or tls:// URL with a host, several with commas between them, and no user or password in it"},
	{"connections: {a: {kind: nats, url: 'nats://'}}", "1: connections.a.url: must be a nats:// or tls:// URL with a host, several with commas between them, and no user or password in it"},
	{"connections: {a: {kind: nats, url: 'tls://b', token: t, nkey_file: f, user: u, password: p}}", "1: connections.a: has more than one way to sign in: nkey_file, token, user"},
	{"ping: {url: 'ftp://b', every: 1s}", "1: ping.every: must be from 5s to 1h; 1: ping.url: must be an https:// or http:// URL with a host, and no user, password or fragment in it"},
	{"commands: {connection: a}\nconnections: {a: {kind: nats, url: 'nats://b'}}", "1: commands.connection: must be the name of a connection of the kind kafka"},
	{"commands: {results: 'db results'}", "1: commands.results: must be the name of a topic, which may end in .*"},
	{"commands: {protocol: eager}", "1: commands.protocol: must be one of classic, consumer"},
	{"commands: {registry: {url: 'registry:8081', user: a}}", "1: commands.registry.password: is required with user; 1: commands.registry.url: must be an https:// or http:// URL with a host, and no user, password or fragment in it"},
	{"commands: {registry: {url: 'http://registry:8081', user: a, password: b}}", "1: commands.registry.password: would be sent unencrypted to another host: use an https:// URL"},
	{"commands: {registry: {password: a}}", "1: commands.registry.url: is required; 1: commands.registry.user: is required with password"},
	{"commands: {ingress: {insecure: true}}", "1: commands.ingress.listen: is required, since ingress has more keys"},
	{kafkaConnection + "commands: {connection: a, ingress: {listen: '127.0.0.1:0'}}", "3: commands.ingress.producers: is required: how each producer proves who it is"},
	{"secrets: {t: " + someToken + "}\ncommands: {ingress: {listen: '127.0.0.1:0', producers: {shop: {secret: t}}}}", "2: commands.connection: is required with ingress: the consumer tries parked commands again"},
	{ingress("0.0.0.0:0", "", "shop: {secret: t}"), "4: commands.ingress.listen: tokens would come unencrypted from other hosts: add cert_file and key_file, or allow it with insecure: true"},
	{ingress("localhost:0", "cert_file: c, ", "shop: {secret: t}"), "4: commands.ingress.key_file: is required with cert_file"},
	{ingress("localhost:0", "client_ca_file: c, ", "shop: {secret: t}"), "4: commands.ingress.cert_file: is required with key_file and client_ca_file"},
	{ingress("localhost:0", "", "shop: {}"), "4: commands.ingress.producers.shop: has neither secret nor certificates"},
	{ingress("localhost:0", "", "shop: {secret: u}"), "4: commands.ingress.producers.shop.secret: must be the name of one of secrets"},
	{ingress("localhost:0", "", "shop: {certificates: [a]}"), "4: commands.ingress.client_ca_file: is required with certificates of producers"},
	{ingress("localhost:0", "", "shop: {secret: t}, crm: {secret: t}"), "4: commands.ingress.producers.shop.secret: is the same token as that of another producer"},
	{ingress("localhost:0", "", "shop: {secret: short}"), "1: secrets.short: is the token of a producer, and must have 32 characters at least: such as openssl rand -hex 32 prints"},
	{
		ingress("localhost:0", "cert_file: c, key_file: k, client_ca_file: a, ", "shop: {certificates: [a]}, crm: {certificates: [a]}"),
		"4: commands.ingress.producers.shop.certificates: has an empty name, or one that another producer has, too",
	},
	{"commands: {topics: ['db-*']}", "1: commands.topics[0]: must be the name of a topic, which may end in .*"},
	{"console: {listen: ':9322'}", "1: console.listen: is an address that other hosts can reach, and anyone could do everything there: add users, tokens, oidc or proxy"},
	{"console: {listen: '10.0.0.1:9322'}", "1: console.listen: is an address that other hosts can reach, and anyone could do everything there: add users, tokens, oidc or proxy"},
	{"console: {url: 'https://tidemark.example.com'}", "1: console.url: is an address that other hosts can reach, and anyone could do everything there: add users, tokens, oidc or proxy"},
	{"console: {users: {ada: {}}}", "1: console.users.ada.password_hash: is required: tidemark console --hash-password prints one; 1: console.users.ada.role: is required: viewer, operator or admin"},
	{"console: {users: {ada: {password_hash: h, role: root}}}", "1: console.users.ada.role: must be one of viewer, operator, admin"},
	{"console: {tokens: {ci: {role: viewer}}}", "1: console.tokens.ci.sha256: is required: the SHA-256 of the token in hex"},
	{"console: {session_key: short}", "1: console.session_key: must have at least 32 characters"},
	{"console: {oidc: {issuer: 'https://i'}}", "1: console.oidc.client_id: is required with issuer; 1: console.url: is required with oidc: the provider sends browsers back to it"},
	{"console: {url: 'https://t', oidc: {issuer: 'http://login.example.com', client_id: c}}", "1: console.oidc.issuer: must be an https:// URL: who signs in, and client_secret, would be sent unencrypted to another host"},
	{"console: {proxy: {header: X-User, roles: {ada: root}}}", "1: console.proxy.from: is required with header: the networks of the proxy; 1: console.proxy.roles.ada: must be one of viewer, operator, admin"},
	{"connections: {a: {kind: nats, url: 'nats://b', user: u}}", "1: connections.a.password: is required with user"},
	{"connections: {a: {kind: nats, url: 'tls://b', password: p}}", "1: connections.a.user: is required with password"},
	{"connections: {a: {kind: nats, url: 'nats://b', token: ''}}", "1: connections.a.token: is empty"},
}

// One mistake hides no other, and those of the environment come last.
func TestAllProblemsAreReported(t *testing.T) {
	t.Parallel()
	text := `
lease: 1s
admin:
  listen: nowhere
  lisen: nowhere
batch: 7
secrets: {a: "${env:MISSING}"}
connections: {a: {kind: kafka}, b: {kind: nats}}
`
	_, err := load("f.yaml", []byte(text), []string{"TIDEMARK_POLL_MAX=never", "TIDEMARK_BATCH_MAX=0"}, "host")
	want := `f.yaml:2: lease: must be from 3s to 1h
f.yaml:4: admin.listen: must be HOST:PORT, such as 127.0.0.1:9321 or :9321
f.yaml:5: admin.lisen: unknown key; did you mean listen?
f.yaml:6: batch: must be keys with values
f.yaml:7: secrets.a: variable MISSING is not set
f.yaml:8: connections.a.brokers: is required: a list of HOST:PORT
f.yaml:8: connections.b.url: is required, such as nats://nats.example.com:4222
TIDEMARK_BATCH_MAX: batch.max: must be from 1 to 50000
TIDEMARK_POLL_MAX: poll.max: must be a duration with its unit, such as 30s or 10ms`
	if err == nil {
		t.Fatal("is fine")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

// Two connections whose names and keys meet: the path of one is no path of the other.
func TestNamesWithDots(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "secrets: {a.b: '${env:K}', a: ['${env:L}']}", "K=1", "L=2")
	text, err := c.Print()
	if err != nil || !strings.Contains(string(text), "secrets:\n  a: ['${env:L}']\n  a.b: ${env:K}\n") {
		t.Errorf("%s %v", text, err)
	}
	_, err = load("f.yaml", []byte("connections:\n  a: {kind: nats, url: 'nats://a', user: u}\n  a.password: {kind: nats}"), nil, "host")
	want := "f.yaml:2: connections.a.password: is required with user\nf.yaml:3: connections.\"a.password\".url: is required, such as nats://nats.example.com:4222"
	if err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, "workers: [&a default]\nname: *a\nsecrets: {x: &s [k, l], y: *s}\nconnections: {a: &c {kind: nats, url: 'nats://a'}, b: *c}")
	if c.Name != "default" || len(c.Secrets["y"]) != 2 || c.Connections["b"].URL != "nats://a" {
		t.Errorf("%+v", c)
	}
	// One that holds itself must come to an end.
	if _, err := load("f.yaml", []byte("connections: &a {a: *a}"), nil, "host"); err == nil {
		t.Error("is fine")
	}
}
