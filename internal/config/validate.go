package config

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// validate checks what several keys say together. What one says alone, set has checked.
func (d *decoder) validate(c *Config) {
	if c.Poll.Min > c.Poll.Max {
		d.problem("poll.min", "must not be above poll.max")
	}
	for i, name := range c.Workers {
		if name != "" && slices.Contains(c.Workers[:i], name) {
			d.problem("workers["+strconv.Itoa(i)+"]", "stands twice")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		if path := joinName("secrets", name); len(c.Secrets[name]) == 0 && !d.failed(path) {
			d.problem(path, "is empty")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.OAuth2)) {
		d.oauth2(joinName("oauth2", name), name, c)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Connections)) {
		d.connection(joinName("connections", name), c.Connections[name])
	}
}

// failed tells whether a key has a problem already, so that a value which could not be
// read is not called missing as well.
func (d *decoder) failed(path string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Key == path })
}

// need reports a missing value, at the place of what it is missing in.
func (d *decoder) need(path, key string, missing bool, text string) {
	full := join(path, key)
	if !missing || d.failed(full) {
		return
	}
	if _, found := d.places[full]; !found {
		d.places[full] = d.places[path]
	}
	d.problem(full, text)
}

func (d *decoder) connection(path string, c Connection) {
	if d.failed(path) {
		return
	}
	d.need(path, "kind", c.Kind == "", "is needed: kafka or nats")
	if c.Kind == "" || d.failed(join(path, "kind")) {
		return
	}
	v := reflect.ValueOf(c)
	for _, f := range fieldsOf(v.Type()) {
		if kind := f.Get("kind"); kind != "" && kind != c.Kind && !v.Field(f.index).IsZero() {
			d.problem(join(path, f.key), "is for the kind "+kind+", and this is "+c.Kind)
		}
	}
	d.tls(join(path, "tls"), c.TLS)
	d.inTheClear(path, c)
	if c.Kind == "kafka" {
		d.need(path, "brokers", len(c.Brokers) == 0, "is needed: a list of HOST:PORT")
		d.sasl(join(path, "sasl"), c.SASL)
		return
	}
	d.need(path, "url", c.URL == "", "is needed: such as nats://nats.example.com:4222")
	var ways []string
	for key, given := range map[string]bool{
		"credentials_file": c.CredentialsFile != "", "user": c.User != "", "token": !c.Token.IsZero(), "nkey_file": c.NKeyFile != "",
	} {
		if given {
			ways = append(ways, key)
		}
	}
	if len(ways) > 1 {
		slices.Sort(ways)
		d.problem(path, "has more than one way to sign in: "+strings.Join(ways, ", "))
	}
	d.need(path, "user", c.User == "" && !c.Password.IsZero(), "is needed with password")
	d.need(path, "password", c.User != "" && c.Password.IsZero(), "is needed with user")
}

func (d *decoder) oauth2(path, name string, c *Config) {
	if d.failed(path) {
		return
	}
	if _, twice := c.Secrets[name]; twice {
		d.problem(path, "has a name that secrets has too")
	}
	o := c.OAuth2[name]
	d.need(path, "token_url", o.TokenURL == "", "is needed: such as https://login.example.com/oauth2/token")
	d.need(path, "client_id", o.ClientID == "", "is needed")
	d.need(path, "client_secret", o.ClientSecret.IsZero(), "is needed")
}

// inTheClear refuses to show a password to everybody on the way. SCRAM, NKeys and JWTs show none.
func (d *decoder) inTheClear(path string, c Connection) {
	if c.TLS.Enabled || c.TLS.Insecure {
		return
	}
	const text = "would travel without encryption to another host: add tls: {enabled: true}, or allow it with tls: {insecure: true}"
	switch {
	case c.Kind == "kafka" && c.SASL.Mechanism == "PLAIN" && !c.SASL.Password.IsZero() && slices.ContainsFunc(c.Brokers, func(b string) bool {
		host, _, _ := net.SplitHostPort(b)
		return !isThisHost(host)
	}):
		d.problem(join(path, "sasl"), "the password "+text)
	case c.Kind == "nats" && (!c.Password.IsZero() || !c.Token.IsZero()):
		for one := range strings.SplitSeq(c.URL, ",") {
			u, err := url.Parse(strings.TrimSpace(one))
			if err == nil && u.Scheme != "tls" && u.Scheme != "wss" && !isThisHost(u.Hostname()) {
				key := "password"
				if !c.Token.IsZero() {
					key = "token"
				}
				d.problem(join(path, key), text)
				return
			}
		}
	}
}

func isThisHost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

func (d *decoder) tls(path string, t TLS) {
	without := t
	without.Enabled, without.Insecure = false, false
	if t.Enabled && t.Insecure {
		d.problem(join(path, "insecure"), "is for connections without TLS, and enabled is true: leave one of them out")
	}
	if without != (TLS{}) && !t.Enabled && !d.failed(join(path, "enabled")) {
		// Else a connection that was meant to be encrypted would not be.
		d.problem(path, "is off, yet more is set in it: add enabled: true")
	}
	d.need(path, "key_file", t.CertFile != "" && t.KeyFile == "", "is needed with cert_file")
	d.need(path, "cert_file", t.KeyFile != "" && t.CertFile == "", "is needed with key_file")
}

func (d *decoder) sasl(path string, s SASL) {
	// What was given and failed counts as given.
	given := s != (SASL{}) || d.failed(join(path, "mechanism")) || d.failed(join(path, "user")) || d.failed(join(path, "password"))
	d.need(path, "mechanism", given && s.Mechanism == "", "is needed: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	d.need(path, "user", given && s.User == "", "is needed")
	d.need(path, "password", given && s.Password.IsZero(), "is needed")
}
