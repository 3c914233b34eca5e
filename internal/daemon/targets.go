package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/target"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/kafka"
	"github.com/tidemarkhq/tidemark/sink/nats"
	"github.com/tidemarkhq/tidemark/sink/stdout"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// targets opens the targets of routes. The configuration supplies secrets and connections by name.
type targets struct {
	out     io.Writer
	db      *store.DB // of the raw records of dead letters
	version string    // of the program
	config  atomic.Pointer[config.Config]

	mu    sync.Mutex // held while a connection is made, so code that only reads config must not take it
	kafka map[string]*shared[*kafka.Connection]
	nats  map[string]*shared[*nats.Connection]
	oauth map[string]*shared[*webhook.Tokens]
	old   []io.Closer // connections that reload has retired; Close closes them
}

func newTargets(c config.Config, out io.Writer, db *store.DB, version string) *targets {
	t := &targets{out: out, db: db, version: version, kafka: map[string]*shared[*kafka.Connection]{}, nats: map[string]*shared[*nats.Connection]{}, oauth: map[string]*shared[*webhook.Tokens]{}}
	t.config.Store(&c)
	return t
}

// shared is a connection that several targets use. Once retired, it is closed with the last of them.
type shared[C io.Closer] struct {
	connection C
	users      int
	retired    bool
}

// A member is a target on a shared connection.
type member struct {
	sink.Sink
	leave func() error
}

func (m member) Close() error { return errors.Join(m.Sink.Close(), m.leave()) }

// join makes s a member of c. The caller holds mu.
func join[C io.Closer](t *targets, c *shared[C], s sink.Sink) sink.Sink {
	c.users++
	return member{s, sync.OnceValue(func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.users--; c.users == 0 && c.retired {
			t.old = slices.DeleteFunc(t.old, func(o io.Closer) bool { return o == io.Closer(c.connection) })
			return c.connection.Close()
		}
		return nil
	})}
}

// retire removes the connections, so that new ones are made from a new configuration. The caller holds mu.
func retire[C io.Closer](t *targets, all map[string]*shared[C]) error {
	var errs []error
	for name, c := range all {
		c.retired = true
		if c.users == 0 {
			errs = append(errs, c.connection.Close())
		} else {
			t.old = append(t.old, c.connection)
		}
		delete(all, name)
	}
	return errors.Join(errs...)
}

// reload makes targets that are opened from now on use c: its secrets, allowed networks and connections, and the files
// that it names. Open targets stay as they are.
func (t *targets) reload(c config.Config) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.config.Store(&c)
	return errors.Join(retire(t, t.kafka), retire(t, t.nats), retire(t, t.oauth))
}

// Open opens the target of a route. An error is one line for an operator, without secrets.
func (t *targets) Open(route store.Route) (sink.Sink, error) {
	// The table refuses bad targets, but a restored dump may contain one.
	if p := target.Check(route.TargetKind, route.TargetRef, route.Options); p != nil {
		return nil, p
	}
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

// options reads the route's options, which target.Check has accepted, into a struct.
func options(route store.Route, into any) error {
	if len(route.Options) == 0 {
		return nil
	}
	if err := json.Unmarshal(route.Options, into); err != nil {
		return fmt.Errorf("options of a %s route cannot be read", route.TargetKind)
	}
	return nil
}

// connection returns the connection that the route names, or the only one of its kind.
func (t *targets) connection(kind, name string) (string, config.Connection, error) {
	connections := t.config.Load().Connections
	if name == "" {
		var names []string
		for _, n := range slices.Sorted(maps.Keys(connections)) {
			if connections[n].Kind == kind {
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
	c, ok := connections[name]
	switch {
	case !ok:
		return "", c, fmt.Errorf("options: there is no connection %q in the configuration of this daemon (connections.%s)", name, name)
	case c.Kind != kind:
		return "", c, fmt.Errorf("options: connection %q is of kind %s, not %s", name, c.Kind, kind)
	}
	return name, c, nil
}

// brokerOptions are the options of routes to Kafka and NATS.
type brokerOptions struct {
	Connection string `json:"connection"`
	Format     string `json:"format"`
}

func (t *targets) openKafka(route store.Route) (sink.Sink, error) {
	var o brokerOptions
	if err := options(route, &o); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	name, c, err := t.connection("kafka", o.Connection)
	if err != nil {
		return nil, err
	}
	if t.kafka[name] == nil {
		connection, err := kafka.Dial(kafkaOptions(c))
		if err != nil {
			return nil, fmt.Errorf("connection %s: %w", name, err)
		}
		t.kafka[name] = &shared[*kafka.Connection]{connection: connection}
	}
	s, err := t.kafka[name].connection.Sink(route.TargetRef, sink.Format(o.Format))
	if err != nil {
		return nil, err
	}
	if sink.Format(o.Format) == kafka.Raw {
		return join(t, t.kafka[name], letteredSink(s, route, t.db, t.version)), nil
	}
	return join(t, t.kafka[name], s), nil
}

func kafkaOptions(c config.Connection) kafka.Options {
	o := kafka.Options{Brokers: c.Brokers, Insecure: c.TLS.Insecure}
	if c.TLS.Enabled {
		o.TLS = &kafka.TLS{CAFile: c.TLS.CAFile, CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, ServerName: c.TLS.ServerName}
	}
	if c.SASL.Mechanism != "" {
		o.SASL = &kafka.SASL{Mechanism: strings.ToLower(c.SASL.Mechanism), User: c.SASL.User, Password: c.SASL.Password.Reveal()}
	}
	return o
}

func (t *targets) openNATS(route store.Route) (sink.Sink, error) {
	var o brokerOptions
	if err := options(route, &o); err != nil {
		return nil, err
	}
	format, err := sink.ParseFormat(o.Format)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	name, c, err := t.connection("nats", o.Connection)
	if err != nil {
		return nil, err
	}
	if t.nats[name] == nil {
		options := nats.Options{
			Servers: strings.Split(c.URL, ","), CredentialsFile: c.CredentialsFile, NKeyFile: c.NKeyFile,
			Token: c.Token.Reveal(), User: c.User, Password: c.Password.Reveal(), Insecure: c.TLS.Insecure,
		}
		if c.TLS.Enabled {
			options.TLS = &nats.TLS{CAFile: c.TLS.CAFile, CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, ServerName: c.TLS.ServerName}
		}
		connection, err := nats.Dial(options)
		if err != nil {
			return nil, fmt.Errorf("connection %s: %w", name, err)
		}
		t.nats[name] = &shared[*nats.Connection]{connection: connection}
	}
	s, err := t.nats[name].connection.Sink(route.TargetRef, format)
	if err != nil {
		return nil, err
	}
	return join(t, t.nats[name], s), nil
}

// brokers are the connections that open targets use.
func (t *targets) brokers() (all []broker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, c := range t.kafka {
		if c.users > 0 {
			all = append(all, broker{"kafka " + name, c.connection, func(place string) (marks, error) { return c.connection.Marks(place), nil }})
		}
	}
	for name, c := range t.nats {
		if c.users > 0 {
			all = append(all, broker{"nats " + name, c.connection, func(place string) (marks, error) { return c.connection.Marks(place) }})
		}
	}
	return all
}

// Close closes all connections. No delivery may be under way.
func (t *targets) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, c := range t.kafka {
		errs = append(errs, c.connection.Close())
	}
	for _, c := range t.nats {
		errs = append(errs, c.connection.Close())
	}
	for _, c := range t.oauth {
		errs = append(errs, c.connection.Close())
	}
	for _, c := range t.old {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
