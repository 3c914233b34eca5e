// Package config reads the daemon's configuration: a YAML file and the environment. It is strict: an unknown key is an
// error, all errors are reported at once, and none of them contains a value.
package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// The comments below are also the descriptions in [Schema]. The tags say what a value must be: yaml its key, is its
// form, range its bounds, enum its choices, kind the kind of connection that has it.

// Config is the daemon's configuration. Load makes one, with all defaults filled in.
type Config struct {
	// The database that holds the events.
	Database Database `yaml:"database"`

	// The name of this daemon in leases and logs. Default, also if empty: the name of the host.
	Name string `yaml:"name" is:"name"`

	// The workers that this daemon runs, by name. Default, also if empty: every worker
	// that a daemon can run.
	Workers []string `yaml:"workers" is:"name"`

	// How long a worker may be silent before another daemon takes over from it. Default:
	// 30s; from 3s to 1h.
	Lease time.Duration `yaml:"lease" range:"lease"`

	// How often workers look for events when nothing wakes them.
	Poll Poll `yaml:"poll"`

	// How much a worker does at a time.
	Batch Batch `yaml:"batch"`

	// How long deliveries in flight may take to finish after the first signal to stop. Default: 20s; from 0s, which waits
	// for nothing, to 10m. Keep it below the time after which your supervisor kills.
	StopTimeout time.Duration `yaml:"stop_timeout" range:"0s..10m"`

	// The HTTP server for health, metrics and profiles.
	Admin Admin `yaml:"admin"`

	// What is logged, to stderr.
	Log Log `yaml:"log"`

	// Keys for signing, and values of headers, by name: the option {"secret": "NAME"} of a route or of one of its headers
	// names one. Each is a text, or a list: the first one is current, the others stay valid while they are being replaced.
	// A header gets the first. None may be empty. Default: none.
	Secrets map[string][]Secret `yaml:"secrets"`

	// Client credentials of OAuth 2.0, by name: the header {"secret": "NAME"} of a route
	// names one, and gets a bearer token. No name of secrets may be one of these.
	// Default: none.
	OAuth2 map[string]OAuth2 `yaml:"oauth2"`

	// What webhooks may reach.
	Webhook Webhook `yaml:"webhook"`

	// Brokers and servers to deliver to, by name: the option {"connection": "NAME"} of a
	// route names one. Default: none.
	Connections map[string]Connection `yaml:"connections"`

	// The address that is called while all is well.
	Ping Ping `yaml:"ping"`

	// The commands that this daemon takes from Kafka.
	Commands Commands `yaml:"commands"`

	// The web console and the JSON API.
	Console Console `yaml:"console"`

	// What Load found and ignored, for the caller to log.
	Warnings []string `yaml:"-"`

	// shown has, by path, the references that Print prints instead of their values.
	shown map[string]string
}

// Database says where the events are.
type Database struct {
	// A postgres:// URL, or key=value pairs as libpq knows them. Default, also if empty:
	// the variable DATABASE_URL, else the variables of libpq (PGHOST, PGDATABASE, …).
	URL Secret `yaml:"url" is:"database" empty:"default"`

	// The address to LISTEN at, which PgBouncer in transaction mode cannot do. Default,
	// also if empty: that of url.
	DirectURL Secret `yaml:"direct_url" is:"database" empty:"default"`

	// The highest number of connections of workers; a daemon takes some more for other
	// things. Default: 10; from 2 to 1000.
	MaxConnections int `yaml:"max_connections" range:"2..1000"`
}

// Poll says how often workers look for events. A worker that finds nothing waits longer
// and longer, from min to max.
type Poll struct {
	// The shortest wait. Default: 10ms; from 1ms to 1m.
	Min time.Duration `yaml:"min" range:"1ms..1m"`

	// The longest wait. Default: 1s; from 1ms to 1m, and not below min.
	Max time.Duration `yaml:"max" range:"1ms..1m"`
}

// Batch says how much a worker does at a time.
type Batch struct {
	// The highest number of events in a pass. Default: 5000; from 1 to 50000.
	Max int `yaml:"max" range:"1..50000"`
}

// Admin is the HTTP server for health, metrics and profiles. It does not authenticate its clients.
type Admin struct {
	// Where it listens, as HOST:PORT. Port 0 lets the system choose. Default:
	// 127.0.0.1:9321; if empty, the daemon listens nowhere.
	Listen string `yaml:"listen" is:"listen"`

	// Whether it serves profiles below /debug/pprof/, to clients on this host only: they show the contents of memory.
	// Default: false.
	Pprof bool `yaml:"pprof"`
}

// Log says what is logged.
type Log struct {
	// The lowest level to log. Default: info.
	Level string `yaml:"level" enum:"debug,info,warn,error"`

	// The form: json is one object a line, text is for people, and auto is text on a terminal and json elsewhere. Default:
	// auto.
	Format string `yaml:"format" enum:"auto,json,text"`
}

// Webhook says what webhooks may reach.
type Webhook struct {
	// Networks that are allowed beside public ones, such as 10.1.0.0/16. Private,
	// loopback and link-local addresses are refused otherwise. Default: none.
	Allow []netip.Prefix `yaml:"allow"`

	// Ports that are allowed beside 80 and 443. Default: none.
	Ports []int `yaml:"ports" range:"1..65535"`

	// A PEM file with the authorities to trust, instead of the system's. Default, also
	// if empty: the system's.
	CAFile string `yaml:"ca_file"`
}

// Ping is a dead man's switch: the address is called while all is well, and an alarm is raised elsewhere when the calls stop. All is
// well while the watch of this daemon answers, and no cause of trouble that stops work is open.
type Ping struct {
	// What to call, with GET: an https:// URL, or http:// to a network of webhook.allow, which holds for it too. It may
	// contain a secret. Default, also if empty: nothing is called.
	URL Secret `yaml:"url" is:"token_url" empty:"default"`

	// How often. Default: 1m; from 5s to 1h.
	Every time.Duration `yaml:"every" range:"5s..1h"`
}

// OAuth2 is how to get tokens by client credentials (RFC 6749, section 4.4). A token is
// kept until shortly before it expires.
type OAuth2 struct {
	// Where tokens come from: an https:// URL, or http:// to a network of webhook.allow,
	// which holds for it too. Needed.
	TokenURL string `yaml:"token_url" is:"token_url"`

	// The client's id. Needed.
	ClientID string `yaml:"client_id"`

	// The client's secret. Needed; it may not be empty.
	ClientSecret Secret `yaml:"client_secret"`

	// The scopes to request. Default: none.
	Scopes []string `yaml:"scopes,omitempty"`

	// The audience of the token, if the server requires one. Default, also if empty: it is not sent.
	Audience string `yaml:"audience,omitempty"`

	// Where id and secret go: basic, the header Authorization, or post, the form.
	// Default, also if empty: basic.
	ClientAuth string `yaml:"client_auth,omitempty" enum:"basic,post"`
}

// Commands says which commands the daemon takes from Kafka.
type Commands struct {
	// The name of the connection, of the kind kafka. Default, also if empty: the daemon takes no commands.
	Connection string `yaml:"connection" is:"name"`

	// The topics, by name. One that ends in .* is every topic that begins so, and what follows is the service whose topic
	// it is. The others are shared by services. Default, also if empty: db-events.* and db-events.
	Topics []string `yaml:"topics"`

	// The consumer group. Default, also if empty: tidemark- and the name of the database.
	Group string `yaml:"group"`

	// The name of the Kafka cluster, which signatures cover. Set it where producers sign: what is signed for a cluster of the
	// same name, with a key that is registered here too, is taken. Default, also if empty: that of connection.
	Cluster string `yaml:"cluster"`

	// The topic that the results go to. With .* at the end each service has its own, which ends in its name. Default:
	// db-results.*. The command tidemark command apply writes it into the service's route.
	Results string `yaml:"results"`

	// The topic that the dead letters go to, in the same way. Default: db-dlq.*.
	DeadLetters string `yaml:"dead_letters"`

	// The highest number of commands in a transaction. Default: 50; from 1 to 50.
	Batch int `yaml:"batch" range:"1..50"`

	// The highest number of records of a partition to fetch ahead. Default: 1000; from 1 to 100000.
	InFlight int `yaml:"in_flight" range:"1..100000"`

	// How the members of the group share the partitions: classic, or consumer, by which the brokers assign them (KIP-848,
	// Kafka 4.3 or later). With older brokers consumer is a kind of classic. Default, also if empty: classic.
	Protocol string `yaml:"protocol,omitempty" enum:"classic,consumer"`

	// The schema registry that producers' serializers for JSON Schema use. Default: records are JSON alone.
	Registry Registry `yaml:"registry,omitempty"`

	// The HTTP server by which producers without Kafka ask for commands.
	Ingress Ingress `yaml:"ingress"`
}

// Registry is a schema registry as Confluent's API has it.
type Registry struct {
	// Its address. Default, also if empty: there is none, and a record with the frame of a registry's serializer is refused.
	URL string `yaml:"url,omitempty" is:"token_url"`

	// The user who signs in, with password. Default, also if empty: none.
	User string `yaml:"user,omitempty"`

	// The password of user. It goes to another host only by https://. Default: none; it may not be empty.
	Password Secret `yaml:"password,omitempty"`

	// A PEM file with the authorities to trust, instead of the system's. Default, also if empty: the system's.
	CAFile string `yaml:"ca_file,omitempty"`
}

// Ingress is the HTTP server by which producers ask for commands.
type Ingress struct {
	// Where it listens, as HOST:PORT. Port 0 lets the system choose. Default, also if empty: the daemon takes no commands over HTTP.
	Listen string `yaml:"listen" is:"listen"`

	// A PEM file with the server's certificate, with key_file. Default, also if empty: requests come unencrypted, which is
	// for this host only.
	CertFile string `yaml:"cert_file,omitempty"`

	// A PEM file with the key of cert_file. Default, also if empty: none.
	KeyFile string `yaml:"key_file,omitempty"`

	// A PEM file with the authorities that sign the certificates of clients. Default, also if empty: no client may show one.
	ClientCAFile string `yaml:"client_ca_file,omitempty"`

	// Whether tokens may come unencrypted from other hosts, such as from a proxy that ends TLS. Default: false, which
	// refuses that.
	Insecure bool `yaml:"insecure,omitempty"`

	// How each producer proves who it is, by its name. At least one is needed.
	Producers map[string]IngressProducer `yaml:"producers,omitempty"`
}

// IngressProducer is how a producer proves who it is. One way is needed.
type IngressProducer struct {
	// The name of one of secrets: the header Authorization has Bearer and this text, of 32 characters at least. Default, also
	// if empty: none.
	Secret string `yaml:"secret,omitempty"`

	// Names that a client's certificate may have: its common name, or a DNS name or URI of its alternative names. Default:
	// none.
	Certificates []string `yaml:"certificates,omitempty"`
}

// Console is the web console and the JSON API.
type Console struct {
	// Where it listens, as HOST:PORT. Port 0 lets the system choose. An address that other hosts can reach needs one of
	// users, tokens, oidc and proxy. Default, also if empty: tidemark run has no console, and tidemark console listens at
	// 127.0.0.1:9322.
	Listen string `yaml:"listen" is:"listen"`

	// How browsers reach it, as https://HOST or https://HOST:PORT, with the path that a proxy puts in front. Needed for oidc
	// and behind a proxy. Default, also if empty: browsers reach it by its address or as localhost.
	URL string `yaml:"url" is:"token_url"`

	// The login of the console, a member of tidemark_admin. Default, also if empty: that of database.url.
	DatabaseURL Secret `yaml:"database_url" is:"database" empty:"default"`

	// Whether it refuses all acts. Default: false.
	ReadOnly bool `yaml:"read_only"`

	// What signs sessions, at least 32 characters. Consoles behind one address need the same one. Default, also if empty: a
	// random one, so that a restart signs everyone out.
	SessionKey Secret `yaml:"session_key" empty:"default"`

	// People who sign in with a password, by name. Default: none.
	Users map[string]ConsoleUser `yaml:"users"`

	// Programs that sign in with a bearer token, by name. Default: none.
	Tokens map[string]ConsoleToken `yaml:"tokens"`

	// An OpenID Connect provider that people sign in at.
	OIDC ConsoleOIDC `yaml:"oidc"`

	// A reverse proxy in front, which may say in a header who has signed in there.
	Proxy ConsoleProxy `yaml:"proxy"`
}

// Open reports that anyone who reaches the console may do everything.
func (c Console) Open() bool {
	return len(c.Users) == 0 && len(c.Tokens) == 0 && c.OIDC.Issuer == "" && c.Proxy.Header == ""
}

// ConsoleUser signs in with a password.
type ConsoleUser struct {
	// The bcrypt hash of the password, as tidemark console --hash-password prints it. Needed.
	PasswordHash Secret `yaml:"password_hash"`

	// What the user may do: a viewer sees everything but payloads, an operator also replays, pauses and opens and closes
	// gates, an admin also changes routes, workers, types and the stage. Needed.
	Role string `yaml:"role" enum:"viewer,operator,admin"`
}

// ConsoleToken is a bearer token of a program.
type ConsoleToken struct {
	// The SHA-256 of the token, in hex. Needed.
	SHA256 Secret `yaml:"sha256"`

	// What the program may do, as of users. Needed.
	Role string `yaml:"role" enum:"viewer,operator,admin"`
}

// ConsoleOIDC is an OpenID Connect provider. Its redirect URI is console.url with /sign-in/callback.
type ConsoleOIDC struct {
	// The provider, an https:// URL; http:// only on this host. Default, also if empty: none.
	Issuer string `yaml:"issuer,omitempty" is:"token_url"`

	// The client's id. Needed with issuer.
	ClientID string `yaml:"client_id,omitempty"`

	// The client's secret. Default, also if empty: none, for a public client.
	ClientSecret Secret `yaml:"client_secret,omitempty" empty:"default"`

	// Scopes to ask for beside openid, profile and email. Default: none.
	Scopes []string `yaml:"scopes,omitempty"`

	// The claim that names a person, such as preferred_username. Only one that people cannot choose, and that no two have, tells them
	// apart in the audit. Default, also if empty: the e-mail address if the provider has verified it, else sub and the
	// provider's host.
	Name string `yaml:"name,omitempty"`

	// The claim of the token that has a person's groups. Default, also if empty: groups.
	Claim string `yaml:"claim,omitempty"`

	// The roles of groups: viewer, operator or admin by group. Default: none.
	Roles map[string]string `yaml:"roles,omitempty" enum:"viewer,operator,admin"`

	// The role of people in none of these groups. Default, also if empty: they are refused.
	Role string `yaml:"role,omitempty" enum:"viewer,operator,admin"`
}

// ConsoleProxy is a reverse proxy in front of the console. People may sign in there, as with oauth2-proxy.
type ConsoleProxy struct {
	// The header with the person's name, such as X-Forwarded-User. The proxy must remove it from what clients send.
	// Default, also if empty: none.
	Header string `yaml:"header,omitempty"`

	// The addresses of the proxy. The header is ignored in requests from others. Its X-Forwarded-For tells the addresses of
	// clients, by which refused sign-ins are counted. Needed with header. Default: none, so that a proxy is one client.
	From []netip.Prefix `yaml:"from,omitempty"`

	// The roles of people by name. Default: none.
	Roles map[string]string `yaml:"roles,omitempty" enum:"viewer,operator,admin"`

	// The role of people who are not named. Default, also if empty: they are refused.
	Role string `yaml:"role,omitempty" enum:"viewer,operator,admin"`
}

// OwnTopic is the topic of a service's own commands; empty: Topics has shared ones only.
func (c Commands) OwnTopic(service string) string {
	for _, t := range c.Topics {
		if strings.HasSuffix(t, ".*") {
			return ServiceTopic(t, service)
		}
	}
	return ""
}

// SharedTopic is the first topic that services share; empty: there is none.
func (c Commands) SharedTopic() string {
	for _, t := range c.Topics {
		if !strings.HasSuffix(t, ".*") {
			return t
		}
	}
	return ""
}

// GroupName is Group, or its default.
func (c Commands) GroupName(database string) string { return cmp.Or(c.Group, "tidemark-"+database) }

// ClusterName is Cluster, or its default.
func (c Commands) ClusterName() string { return cmp.Or(c.Cluster, c.Connection) }

// ServiceTopic is the topic of a service, by a topic of Commands.
func ServiceTopic(topic, service string) string {
	if prefix, own := strings.CutSuffix(topic, "*"); own {
		return prefix + service
	}
	return topic
}

// Connection is a broker or a server to deliver to.
type Connection struct {
	// The kind of server. Needed.
	Kind string `yaml:"kind" enum:"kafka,nats"`

	// Kafka: bootstrap brokers, each as HOST:PORT. At least one is needed.
	Brokers []string `yaml:"brokers,omitempty" kind:"kafka" is:"address"`

	// Kafka: how to sign in. Default: without signing in.
	SASL SASL `yaml:"sasl,omitempty" kind:"kafka"`

	// NATS: nats:// or tls:// and the server's HOST:PORT, or several with commas between them. Needed; it may not contain
	// a password.
	URL string `yaml:"url,omitempty" kind:"nats" is:"nats"`

	// NATS: a file with a JWT and its seed. At most one of credentials_file, user, token
	// and nkey_file. Default, also if empty: none.
	CredentialsFile string `yaml:"credentials_file,omitempty" kind:"nats"`

	// NATS: the user who signs in, with password. Default, also if empty: none.
	User string `yaml:"user,omitempty" kind:"nats"`

	// NATS: the password of user. Default: none; it may not be empty.
	Password Secret `yaml:"password,omitempty" kind:"nats"`

	// NATS: a token to sign in with. Default: none; it may not be empty.
	Token Secret `yaml:"token,omitempty" kind:"nats"`

	// NATS: a file with an NKey seed. Default, also if empty: none.
	NKeyFile string `yaml:"nkey_file,omitempty" kind:"nats"`

	// How the connection is encrypted. Default: it is not, except that a URL with tls://
	// is.
	TLS TLS `yaml:"tls,omitempty"`
}

// SASL says how to sign in to Kafka.
type SASL struct {
	// How to sign in. Needed.
	Mechanism string `yaml:"mechanism,omitempty" enum:"PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"`

	// The user. Needed.
	User string `yaml:"user,omitempty"`

	// The user's password. Needed; it may not be empty.
	Password Secret `yaml:"password,omitempty"`
}

// TLS says how a connection is encrypted.
type TLS struct {
	// Whether it is encrypted. Default: false, and then nothing but insecure may be set
	// here.
	Enabled bool `yaml:"enabled,omitempty"`

	// Whether a password or a token may be sent unencrypted to another host, where anyone on the network path can read it.
	// Default: false, which refuses that.
	Insecure bool `yaml:"insecure,omitempty"`

	// A PEM file with the authorities to trust, instead of the system's. Default, also
	// if empty: the system's.
	CAFile string `yaml:"ca_file,omitempty"`

	// A PEM file with the certificate to show, with key_file. Default, also if empty:
	// none is shown.
	CertFile string `yaml:"cert_file,omitempty"`

	// A PEM file with the key of cert_file. Default, also if empty: none.
	KeyFile string `yaml:"key_file,omitempty"`

	// The name that the server's certificate must have. Default, also if empty: the host
	// that is connected to.
	ServerName string `yaml:"server_name,omitempty"`
}

// Default is the configuration of an empty file and an empty environment, except that its Name is empty.
func Default() Config {
	return Config{
		Database:    Database{MaxConnections: 10},
		Lease:       30 * time.Second,
		Poll:        Poll{Min: 10 * time.Millisecond, Max: time.Second},
		Batch:       Batch{Max: 5000},
		StopTimeout: 20 * time.Second,
		Commands:    Commands{Topics: []string{"db-events.*", "db-events"}, Results: "db-results.*", DeadLetters: "db-dlq.*", Batch: 50, InFlight: 1000},
		Ping:        Ping{Every: time.Minute},
		Admin:       Admin{Listen: "127.0.0.1:9321"},
		Log:         Log{Level: "info", Format: "auto"},
	}
}

// Problem is one thing that is wrong. It never holds a value.
type Problem struct {
	File     string `json:"file,omitempty"`     // empty: it is in Variable
	Line     int    `json:"line,omitempty"`     // in File; 0: the file as a whole
	Variable string `json:"variable,omitempty"` // of the environment; empty: it is in File
	Key      string `json:"key,omitempty"`      // path such as admin.listen; empty: the file as a whole
	Text     string `json:"problem"`

	missing bool // a value is
}

// String is the problem on a line: FILE:LINE: KEY: what is wrong.
func (p Problem) String() string {
	var text strings.Builder
	switch {
	case p.Variable != "":
		text.WriteString(p.Variable + ": ")
	case p.Line > 0:
		fmt.Fprintf(&text, "%s:%d: ", p.File, p.Line)
	case p.File != "":
		text.WriteString(p.File + ": ")
	}
	if p.Key != "" {
		text.WriteString(p.Key + ": ")
	}
	return text.String() + p.Text
}

// Error has all problems of a configuration: those of the file in the order of its lines, then those of the
// environment.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}
