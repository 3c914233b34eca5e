package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
)

// newConsumer is the consumer of commands; nil: the configuration has no commands.connection.
func (d *Daemon) newConsumer() (*consumer.Consumer, error) {
	c := d.config.Commands
	if c.Connection == "" {
		return nil, nil
	}
	registry, err := Registry(d.config)
	if err != nil {
		return nil, err
	}
	return consumer.New(d.pool, consumer.Options{
		Client: func() ([]kgo.Opt, error) {
			connection, err := d.dialled.take(d.commandsConnection)
			if err != nil {
				return nil, err
			}
			return kafkaOptions(connection).Client()
		},
		Topics: c.Topics, Group: c.GroupName(d.pool.Config().ConnConfig.Database), Cluster: c.ClusterName(), Unnamed: c.Cluster == "",
		Slots: d.slots, Batch: c.Batch, InFlight: c.InFlight, Lease: d.config.Lease, Log: d.options.Log, Observe: d.metrics.command,
		Worker: func(topic string, partition int) worker.Options {
			return d.workerOptions(store.CommandWorker, d.metrics.of(store.CommandWorker, store.CommandSource(topic), partition))
		},
		ServerSide: c.Protocol == "consumer", Registry: registry,
	}), nil
}

// commandsConnection is the connection of commands as the configuration has it now.
func (d *Daemon) commandsConnection() (config.Connection, error) {
	_, connection, err := d.targets.connection("kafka", d.config.Commands.Connection)
	return connection, err
}

// dialled is the connection that a client was last made for, with what its files held then: a certificate is renewed under its name.
type dialled struct {
	mu         sync.Mutex // held while the configuration is asked, so that none that is older is kept last
	connection config.Connection
	files      [3]string
}

func (d *dialled) take(now func() (config.Connection, error)) (config.Connection, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	connection, err := now()
	d.connection, d.files = connection, filesOf(connection)
	return connection, err
}

// differs: a client that is made now is another one.
func (d *dialled) differs(now func() (config.Connection, error)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	connection, err := now()
	return err != nil || !reflect.DeepEqual(connection, d.connection) || filesOf(connection) != d.files
}

// filesOf is what the files of a connection hold. Of one that cannot be read a client tells.
func filesOf(c config.Connection) (texts [3]string) {
	for i, name := range []string{c.TLS.CAFile, c.TLS.CertFile, c.TLS.KeyFile} {
		if name != "" {
			text, _ := os.ReadFile(name)
			texts[i] = string(text)
		}
	}
	return texts
}

// Registry is a client of commands.registry; nil: the configuration has none.
func Registry(c config.Config) (*sr.Client, error) {
	r := c.Commands.Registry
	if r.URL == "" {
		return nil, nil
	}
	options := []sr.ClientOpt{sr.URLs(r.URL), sr.UserAgent("tidemark")}
	if r.User != "" {
		options = append(options, sr.BasicAuth(r.User, r.Password.Reveal()))
	}
	if r.CAFile != "" {
		pem, err := os.ReadFile(r.CAFile)
		if err != nil {
			return nil, fmt.Errorf("commands.registry.ca_file: %w", err)
		}
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("commands.registry.ca_file: %s has no certificate in PEM form", r.CAFile)
		}
		options = append(options, sr.DialTLSConfig(&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}))
	}
	return sr.NewClient(options...)
}

// KafkaClient returns a client that reaches the brokers of a connection as the daemon does.
func KafkaClient(c config.Config, connection string, more ...kgo.Opt) (*kgo.Client, error) {
	_, found, err := newTargets(c, nil, nil, "").connection("kafka", connection)
	if err != nil {
		return nil, err
	}
	options, err := kafkaOptions(found).Client()
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(options, more...)...)
}

// failingCommands names the brokers if none of them answers, and the partitions of topics of commands that meet the same error
// again and again.
func (d *Daemon) failingCommands(ctx context.Context) error {
	failing := d.consumer.Failing()
	var errs []error
	if err := d.consumer.Reach(ctx); err != nil {
		errs = append(errs, fmt.Errorf("brokers %s: %w", d.brokers(), err))
	}
	for _, name := range slices.Sorted(maps.Keys(failing)) {
		errs = append(errs, fmt.Errorf("%s: %w", name, failing[name]))
	}
	return errors.Join(errs...)
}

func (d *Daemon) brokers() string {
	connection, _ := d.commandsConnection()
	return strings.Join(connection.Brokers, ", ")
}

// describeCommands names the brokers and the partitions, with how far they are behind.
func (d *Daemon) describeCommands() string {
	if gate := d.consumer.Gate(); gate != "" {
		return "closed by " + gate
	}
	list := []string{"brokers " + d.brokers()}
	for _, p := range d.consumer.Partitions() {
		list = append(list, fmt.Sprintf("%s/%d %d behind", p.Topic, p.Partition, p.Behind))
	}
	return strings.Join(list, ", ")
}
