package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/cursor"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
	"github.com/tidemarkhq/tidemark/sink/nats"
	"github.com/tidemarkhq/tidemark/sink/stdout"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// targets opens the targets of routes with what the configuration knows: keys by their
// name, connections by theirs.
type targets struct {
	config config.Config
	out    io.Writer

	mu    sync.Mutex
	kafka map[string]*kafka.Connection
	nats  map[string]*nats.Connection
}

func newTargets(c config.Config, out io.Writer) *targets {
	return &targets{config: c, out: out, kafka: map[string]*kafka.Connection{}, nats: map[string]*nats.Connection{}}
}

// Open opens the target of a route. An error is one line for an operator, without secrets.
func (t *targets) Open(route cursor.Route) (sink.Sink, error) {
	switch route.TargetKind {
	case "webhook":
		return t.webhook(route)
	case "kafka":
		return t.openKafka(route)
	case "nats":
		return t.openNATS(route)
	case "stdout":
		var o struct {
			Format string `json:"format"`
		}
		if err := options(route, &o); err != nil {
			return nil, err
		}
		format, err := sink.ParseFormat(o.Format)
		if err != nil {
			return nil, err
		}
		return stdout.New(t.out, stdout.Options{Format: format})
	case "go":
		return nil, errors.New("its target is a function of a Go program, which has to run the worker itself")
	default:
		return nil, fmt.Errorf("there is no target kind %q in this build", route.TargetKind)
	}
}

// options reads the route's options into a struct that knows all of them.
func options(route cursor.Route, into any) error {
	if len(route.Options) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(route.Options))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		return fmt.Errorf("options of a %s route: %s", route.TargetKind, text)
	}
	return nil
}

func (t *targets) webhook(route cursor.Route) (sink.Sink, error) {
	var o struct {
		Secret   string            `json:"secret"`
		Unsigned bool              `json:"unsigned"`
		Format   string            `json:"format"`
		Headers  map[string]string `json:"headers"`
	}
	if err := options(route, &o); err != nil {
		return nil, err
	}
	format, err := sink.ParseFormat(o.Format)
	if err != nil {
		return nil, err
	}
	var secrets []string
	switch {
	case o.Secret != "" && o.Unsigned:
		return nil, errors.New("options: secret and unsigned exclude each other")
	case o.Secret != "":
		for _, s := range t.config.Secrets[o.Secret] {
			secrets = append(secrets, s.Reveal())
		}
		if secrets == nil {
			return nil, fmt.Errorf("options: there is no secret %q in the configuration of this daemon (secrets.%s)", o.Secret, o.Secret)
		}
	case !o.Unsigned:
		return nil, errors.New(`options: a webhook needs "secret", the name of a key in the configuration, or "unsigned": true`)
	}
	ports := make([]uint16, 0, len(t.config.Webhook.Ports))
	for _, p := range t.config.Webhook.Ports {
		ports = append(ports, uint16(p)) //nolint:gosec // the configuration's range is that of ports
	}
	return webhook.New(webhook.Options{
		URL: route.TargetRef, Secrets: secrets, Unsigned: o.Unsigned, Format: format, Headers: o.Headers,
		Allow: t.config.Webhook.Allow, Ports: ports, CAFile: t.config.Webhook.CAFile, MaxConns: route.Concurrency,
	})
}

// connection chooses the connection that the route names, or the only one of its kind.
func (t *targets) connection(kind, name string) (string, config.Connection, error) {
	if name == "" {
		var names []string
		for _, n := range slices.Sorted(maps.Keys(t.config.Connections)) {
			if t.config.Connections[n].Kind == kind {
				names = append(names, n)
			}
		}
		switch len(names) {
		case 0:
			return "", config.Connection{}, fmt.Errorf("the configuration of this daemon has no connection of kind %s", kind)
		case 1:
			name = names[0]
		default:
			return "", config.Connection{}, fmt.Errorf(`options: "connection" is needed, one of %s`, strings.Join(names, ", "))
		}
	}
	c, ok := t.config.Connections[name]
	switch {
	case !ok:
		return "", c, fmt.Errorf("options: there is no connection %q in the configuration of this daemon (connections.%s)", name, name)
	case c.Kind != kind:
		return "", c, fmt.Errorf("options: connection %q is of kind %s, not %s", name, c.Kind, kind)
	}
	return name, c, nil
}

// brokerOptions are those of routes to Kafka and to NATS.
type brokerOptions struct {
	Connection string `json:"connection"`
	Format     string `json:"format"`
}

func (t *targets) openKafka(route cursor.Route) (sink.Sink, error) {
	var o brokerOptions
	if err := options(route, &o); err != nil {
		return nil, err
	}
	format, err := sink.ParseFormat(o.Format)
	if err != nil {
		return nil, err
	}
	name, c, err := t.connection("kafka", o.Connection)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kafka[name] == nil {
		options := kafka.Options{Brokers: c.Brokers}
		if c.TLS.Enabled {
			options.TLS = &kafka.TLS{CAFile: c.TLS.CAFile, CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, ServerName: c.TLS.ServerName}
		}
		if c.SASL.Mechanism != "" {
			options.SASL = &kafka.SASL{Mechanism: strings.ToLower(c.SASL.Mechanism), User: c.SASL.User, Password: c.SASL.Password.Reveal()}
		}
		if t.kafka[name], err = kafka.Dial(options); err != nil {
			delete(t.kafka, name)
			return nil, fmt.Errorf("connection %s: %w", name, err)
		}
	}
	return t.kafka[name].Sink(route.TargetRef, format)
}

func (t *targets) openNATS(route cursor.Route) (sink.Sink, error) {
	var o brokerOptions
	if err := options(route, &o); err != nil {
		return nil, err
	}
	format, err := sink.ParseFormat(o.Format)
	if err != nil {
		return nil, err
	}
	name, c, err := t.connection("nats", o.Connection)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nats[name] == nil {
		options := nats.Options{
			Servers: strings.Split(c.URL, ","), CredentialsFile: c.CredentialsFile, NKeyFile: c.NKeyFile,
			Token: c.Token.Reveal(), User: c.User, Password: c.Password.Reveal(),
		}
		if c.TLS.Enabled {
			options.TLS = &nats.TLS{CAFile: c.TLS.CAFile, CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, ServerName: c.TLS.ServerName}
		}
		if t.nats[name], err = nats.Dial(options); err != nil {
			delete(t.nats, name)
			return nil, fmt.Errorf("connection %s: %w", name, err)
		}
	}
	return t.nats[name].Sink(route.TargetRef, format)
}

// Close gives all connections back.
func (t *targets) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, c := range t.kafka {
		errs = append(errs, c.Close())
	}
	for _, c := range t.nats {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
