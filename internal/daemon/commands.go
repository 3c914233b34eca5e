package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

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
			_, connection, err := d.targets.connection("kafka", c.Connection)
			if err != nil {
				return nil, err
			}
			return kafkaOptions(connection).Client()
		},
		Topics: c.Topics, Group: c.GroupName(d.pool.Config().ConnConfig.Database), Cluster: c.ClusterName(),
		Batch: c.Batch, InFlight: c.InFlight, Lease: d.config.Lease, Log: d.options.Log, Observe: d.metrics.command,
		Worker: func(topic string, partition int) worker.Options {
			return d.workerOptions(store.CommandWorker, d.metrics.of(store.CommandWorker, store.CommandSource(topic), partition))
		},
		ServerSide: c.Protocol == "consumer", Registry: registry,
	}), nil
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
	return strings.Join(d.config.Connections[d.config.Commands.Connection].Brokers, ", ")
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
