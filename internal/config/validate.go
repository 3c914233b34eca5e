package config

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Validate lists what is wrong between keys. What is wrong with one key alone, Load finds while it reads the value.
func (c Config) Validate() []Problem {
	var v validation
	if c.Poll.Min > c.Poll.Max {
		v.problem("poll.min", "must not be above poll.max")
	}
	for i, name := range c.Workers {
		if name != "" && slices.Contains(c.Workers[:i], name) {
			v.problem("workers["+strconv.Itoa(i)+"]", "is a duplicate")
		}
	}
	for name, values := range c.Secrets {
		v.require(joinName("secrets", name), len(values) == 0, "is empty")
	}
	for name, o := range c.OAuth2 {
		path := joinName("oauth2", name)
		if _, twice := c.Secrets[name]; twice {
			v.problem(path, "has the name of a secret: rename one of them")
		}
		v.require(join(path, "token_url"), o.TokenURL == "", "is required, such as https://login.example.com/oauth2/token")
		v.require(join(path, "client_id"), o.ClientID == "", "is required")
		v.require(join(path, "client_secret"), o.ClientSecret.IsZero(), "is required")
	}
	for name, connection := range c.Connections {
		v.connection(joinName("connections", name), connection)
	}
	if name := c.Commands.Connection; name != "" && c.Connections[name].Kind != "kafka" {
		v.problem("commands.connection", "must be the name of a connection of the kind kafka")
	}
	for i, topic := range c.Commands.Topics {
		if !topicForm.MatchString(topic) {
			v.problem("commands.topics["+strconv.Itoa(i)+"]", "must be the name of a topic, which may end in .*")
		}
	}
	for key, topic := range map[string]string{"commands.results": c.Commands.Results, "commands.dead_letters": c.Commands.DeadLetters} {
		if !topicForm.MatchString(topic) {
			v.problem(key, "must be the name of a topic, which may end in .*")
		}
	}
	r := c.Commands.Registry
	v.require("commands.registry.url", r.URL == "" && (r.User != "" || !r.Password.IsZero() || r.CAFile != ""), "is required")
	v.require("commands.registry.user", r.User == "" && !r.Password.IsZero(), "is required with password")
	v.require("commands.registry.password", r.User != "" && r.Password.IsZero(), "is required with user")
	if !r.Password.IsZero() && toOtherHost(r.URL) {
		v.problem("commands.registry.password", "would be sent unencrypted to another host: use an https:// URL")
	}
	v.ingress(c)
	v.console(c.Console)
	slices.SortStableFunc(v, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
	return v
}

var topicForm = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}(\.\*)?$`)

type validation []Problem

func (v *validation) problem(path, text string) { *v = append(*v, Problem{Key: path, Text: text}) }

func (v *validation) require(path string, missing bool, text string) {
	if missing {
		*v = append(*v, Problem{Key: path, Text: text, missing: true})
	}
}

func (v *validation) console(c Console) {
	for name, u := range c.Users {
		path := joinName("console.users", name)
		v.require(join(path, "password_hash"), u.PasswordHash.IsZero(), "is required: tidemark console --hash-password prints one")
		v.require(join(path, "role"), u.Role == "", "is required: viewer, operator or admin")
	}
	for name, t := range c.Tokens {
		path := joinName("console.tokens", name)
		v.require(join(path, "sha256"), t.SHA256.IsZero(), "is required: the SHA-256 of the token in hex")
		v.require(join(path, "role"), t.Role == "", "is required: viewer, operator or admin")
	}
	if key := c.SessionKey.Reveal(); key != "" && len(key) < 32 {
		v.problem("console.session_key", "must have at least 32 characters")
	}
	v.require("console.oidc.client_id", c.OIDC.Issuer != "" && c.OIDC.ClientID == "", "is required with issuer")
	v.require("console.oidc.issuer", c.OIDC.Issuer == "" && c.OIDC.ClientID != "", "is required with client_id")
	if toOtherHost(c.OIDC.Issuer) {
		v.problem("console.oidc.issuer", "must be an https:// URL: who signs in, and client_secret, would be sent unencrypted to another host")
	}
	v.require("console.url", c.OIDC.Issuer != "" && c.URL == "", "is required with oidc: the provider sends browsers back to it")
	v.require("console.proxy.from", c.Proxy.Header != "" && len(c.Proxy.From) == 0, "is required with header: the networks of the proxy")
	if at, err := url.Parse(c.URL); err == nil && c.URL != "" && c.Open() && !isThisHost(at.Hostname()) {
		v.problem("console.url", "is an address that other hosts can reach, and anyone could do everything there: add users, tokens, oidc or proxy")
	}
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && c.Open() && !isThisHost(host) {
		v.problem("console.listen", "is an address that other hosts can reach, and anyone could do everything there: add users, tokens, oidc or proxy")
	}
}

func (v *validation) connection(path string, c Connection) {
	if c.Kind != "kafka" && c.Kind != "nats" {
		v.require(join(path, "kind"), true, "is required: kafka or nats")
		return
	}
	fields := reflect.ValueOf(c)
	for _, f := range fieldsOf(fields.Type()) {
		if kind := f.Get("kind"); kind != "" && kind != c.Kind && !fields.Field(f.index).IsZero() {
			v.problem(join(path, f.key), "is for the kind "+kind+", and this is "+c.Kind)
		}
	}
	v.tls(join(path, "tls"), c.TLS)
	v.plaintext(path, c)
	if c.Kind == "kafka" {
		v.require(join(path, "brokers"), len(c.Brokers) == 0, "is required: a list of HOST:PORT")
		if s := join(path, "sasl"); c.SASL != (SASL{}) {
			v.require(join(s, "mechanism"), c.SASL.Mechanism == "", "is required: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
			v.require(join(s, "user"), c.SASL.User == "", "is required")
			v.require(join(s, "password"), c.SASL.Password.IsZero(), "is required")
		}
		return
	}
	v.require(join(path, "url"), c.URL == "", "is required, such as nats://nats.example.com:4222")
	var ways []string
	for key, given := range map[string]bool{
		"credentials_file": c.CredentialsFile != "", "user": c.User != "", "token": !c.Token.IsZero(), "nkey_file": c.NKeyFile != "",
	} {
		if given {
			ways = append(ways, key)
		}
	}
	if slices.Sort(ways); len(ways) > 1 {
		v.problem(path, "has more than one way to sign in: "+strings.Join(ways, ", "))
	}
	v.require(join(path, "user"), c.User == "" && !c.Password.IsZero(), "is required with password")
	v.require(join(path, "password"), c.User != "" && c.Password.IsZero(), "is required with user")
}

func (v *validation) tls(path string, t TLS) {
	files := t
	files.Enabled, files.Insecure = false, false
	if t.Enabled && t.Insecure {
		v.problem(join(path, "insecure"), "is for connections without TLS, and enabled is true: remove one of them")
	}
	// Without this a connection that was meant to be encrypted would not be.
	v.require(join(path, "enabled"), files != (TLS{}) && !t.Enabled, "is required to be true, since tls has more keys")
	v.require(join(path, "key_file"), t.CertFile != "" && t.KeyFile == "", "is required with cert_file")
	v.require(join(path, "cert_file"), t.KeyFile != "" && t.CertFile == "", "is required with key_file")
}

// plaintext refuses to send a password unencrypted to another host. SCRAM, NKeys and JWTs send none.
func (v *validation) plaintext(path string, c Connection) {
	const text = "would be sent unencrypted to another host: add tls: {enabled: true}, or allow it with tls: {insecure: true}"
	if c.TLS.Enabled || c.TLS.Insecure {
		return
	}
	if c.Kind == "kafka" && c.SASL.Mechanism == "PLAIN" && !c.SASL.Password.IsZero() {
		for _, broker := range c.Brokers {
			if host, _, _ := net.SplitHostPort(broker); !isThisHost(host) {
				v.problem(join(path, "sasl"), "the password "+text)
				return
			}
		}
	}
	key := "token"
	if c.Token.IsZero() {
		key = "password"
	}
	if c.Kind != "nats" || c.Token.IsZero() && c.Password.IsZero() {
		return
	}
	for one := range strings.SplitSeq(c.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err == nil && u.Scheme != "tls" && u.Scheme != "wss" && !isThisHost(u.Hostname()) {
			v.problem(join(path, key), text)
			return
		}
	}
}

// leastToken is how many characters a bearer token has at the least.
const leastToken = 32

func (v *validation) ingress(c Config) {
	const path = "commands.ingress"
	i := c.Commands.Ingress
	if i.Listen == "" {
		rest := i
		v.require(join(path, "listen"), !reflect.ValueOf(rest).IsZero(), "is required, since ingress has more keys")
		return
	}
	v.require("commands.connection", c.Commands.Connection == "", "is required with ingress: the consumer tries parked commands again")
	v.require(join(path, "key_file"), i.CertFile != "" && i.KeyFile == "", "is required with cert_file")
	v.require(join(path, "cert_file"), i.CertFile == "" && (i.KeyFile != "" || i.ClientCAFile != ""), "is required with key_file and client_ca_file")
	v.require(join(path, "producers"), len(i.Producers) == 0, "is required: how each producer proves who it is")
	if host, _, _ := net.SplitHostPort(i.Listen); i.CertFile == "" && !i.Insecure && !isThisHost(host) {
		v.problem(join(path, "listen"), "tokens would come unencrypted from other hosts: add cert_file and key_file, or allow it with insecure: true")
	}
	tokens, names := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(i.Producers)) {
		p := i.Producers[name]
		at := joinName(join(path, "producers"), name)
		v.require(at, p.Secret == "" && len(p.Certificates) == 0, "has neither secret nor certificates")
		if utf8.RuneCountInString(name) > 200 {
			v.problem(at, "has more than 200 characters")
		}
		if len(p.Certificates) > 0 && i.ClientCAFile == "" {
			v.require(join(path, "client_ca_file"), true, "is required with certificates of producers")
		}
		for _, certificate := range p.Certificates {
			if names[certificate] != "" || certificate == "" {
				v.problem(join(at, "certificates"), "has an empty name, or one that another producer has, too")
			}
			names[certificate] = name
		}
		if p.Secret == "" {
			continue
		}
		if len(c.Secrets[p.Secret]) == 0 {
			v.problem(join(at, "secret"), "must be the name of one of secrets")
		}
		for _, token := range c.Secrets[p.Secret] {
			if utf8.RuneCountInString(token.Reveal()) < leastToken {
				v.problem(joinName("secrets", p.Secret), "is the token of a producer, and must have 32 characters at least: such as openssl rand -hex 32 prints")
			}
			if other := tokens[token.Reveal()]; other != "" && other != name {
				v.problem(join(at, "secret"), "is the same token as that of another producer")
			}
			tokens[token.Reveal()] = name
		}
	}
}

// toOtherHost tells whether a URL leads to another host without encryption.
func toOtherHost(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && !isThisHost(u.Hostname())
}

func isThisHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
