// Package testkafka runs Apache Kafka for tests and benchmarks: nodes that are broker and controller, on loopback.
package testkafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tidemarkhq/tidemark/internal/devpg"
)

// JarsVariable is the environment variable with the folder of Kafka's jars, which scripts/kafka.sh prints.
const JarsVariable = "KAFKA_JARS"

const (
	startTimeout = 2 * time.Minute
	pollEvery    = 20 * time.Millisecond
)

// Node is a node of Kafka with a data directory of its own.
type Node struct {
	ID     int32 // from 1
	jars   string
	flags  []string // of the Java virtual machine
	dir    string
	ports  [2]int // of the broker and the controller
	users  []string
	voters string // the controllers of a cluster; empty: the node is alone
	size   int16  // nodes of the cluster
	jvm    *JVM
}

// New starts a node that ends with the test. Without Kafka's jars it skips the test.
func New(t testing.TB) *Node { return NewSecure(t) }

// NewSecure is New for a node at which these users sign in, by SCRAM-SHA-256 with passwords like their names. The first may do
// everything; the others what ACLs allow.
func NewSecure(t testing.TB, users ...string) *Node {
	t.Helper()
	n := &Node{ID: 1, size: 1, jars: jarsFor(t), flags: quickStart, users: users}
	if err := n.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.stopWith(t)
	return n
}

func jarsFor(t testing.TB) string {
	t.Helper()
	jars := os.Getenv(JarsVariable)
	if jars == "" {
		t.Skipf("no real Kafka: set %s to what scripts/kafka.sh prints, as make test does", JarsVariable)
	}
	return jars
}

func (n *Node) stopWith(t testing.TB) {
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// NewCluster starts so many nodes that end with the test, whose topics have a copy on each node, and take a record when most copies
// have it. Without Kafka's jars it skips the test.
func NewCluster(t testing.TB, size int16) []*Node {
	t.Helper()
	jars := jarsFor(t)
	ports, err := freePorts(t.Context(), 2*int(size))
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*Node
	var voters []string
	for i := range size {
		nodes = append(nodes, &Node{ID: int32(i) + 1, size: size, jars: jars, flags: quickStart, dir: t.TempDir(), ports: [2]int(ports[2*i : 2*i+2])})
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", i+1, ports[2*i+1]))
	}
	started := make(chan error, size)
	for _, n := range nodes {
		n.voters = strings.Join(voters, ",")
		if err := n.format(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		n.stopWith(t)
		go func() { started <- n.Restart(t.Context()) }()
	}
	for range nodes {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// quickStart spares the compiler whose code is fast later: a test does not last that long.
var quickStart = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}

// Start returns when the node answers. The flags are those of the Java virtual machine.
func Start(ctx context.Context, jars string, flags ...string) (*Node, error) {
	n := &Node{ID: 1, size: 1, jars: jars, flags: flags}
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) (err error) {
	if n.dir, err = os.MkdirTemp("", "tidemark-kafka-"); err != nil {
		return err
	}
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	n.ports = [2]int(ports)
	if err := errors.Join(n.format(ctx), n.Restart(ctx)); err != nil {
		return errors.Join(err, n.Stop())
	}
	return nil
}

// freePorts returns different ports that nothing listens on. A node keeps them while it is down.
func freePorts(ctx context.Context, count int) (ports []int, err error) {
	for len(ports) < count {
		port, err := devpg.FreePort(ctx)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

func (n *Node) settings() string { return filepath.Join(n.dir, "server.properties") }

// log is where the output of every run of the node goes.
func (n *Node) log() string { return filepath.Join(n.dir, "node.log") }

// secure are the settings of a node at which users sign in. The controller is its own client, without a name.
const secure = `
listener.security.protocol.map=CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
inter.broker.listener.name=SASL_PLAINTEXT
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-256
sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="%[1]s" password="%[1]s";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:%[1]s;User:ANONYMOUS
`

// format writes the settings and an empty data directory.
func (n *Node) format(ctx context.Context) error {
	listener, security, how := "PLAINTEXT", "", []string{"--standalone"}
	quorum := fmt.Sprintf("controller.quorum.bootstrap.servers=127.0.0.1:%d", n.ports[1])
	if n.voters != "" {
		quorum, how = "controller.quorum.voters="+n.voters, nil
	}
	if len(n.users) > 0 {
		listener, security = "SASL_PLAINTEXT", fmt.Sprintf(secure, n.users[0])
		for _, user := range n.users {
			how = append(how, "--add-scram", fmt.Sprintf("SCRAM-SHA-256=[name=%s,password=%[1]s]", user))
		}
	}
	if err := os.WriteFile(n.settings(), fmt.Appendf(nil, `
process.roles=broker,controller
node.id=%[6]d
%[7]s
controller.listener.names=CONTROLLER
listeners=%[4]s://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
log.dirs=%[3]s
auto.create.topics.enable=false
offsets.topic.replication.factor=%[8]d
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=%[8]d
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=%[9]d
min.insync.replicas=%[9]d
group.initial.rebalance.delay.ms=0
%[5]s`, n.ports[0], n.ports[1], filepath.Join(n.dir, "data"), listener, security, n.ID, quorum, n.size, n.size/2+1), 0o600); err != nil {
		return err
	}
	const cluster = "dGlkZW1hcmstdGVzdC0wMQ" // 16 bytes in base64
	jvm, err := Run(n.jars, n.log(), slices.Concat(quickStart, []string{
		"kafka.tools.StorageTool", "format", "--cluster-id", cluster, "--config", n.settings(),
	}, how)...)
	if err != nil {
		return err
	}
	defer jvm.Kill()
	select {
	case <-jvm.Done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := os.Stat(filepath.Join(n.dir, "data", "meta.properties")); err != nil {
		return jvm.Err(errors.New("the data directory of Kafka was not formatted"))
	}
	return nil
}

// Restart runs the node again on its data and port, after Kill, and returns when it answers.
func (n *Node) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("Kafka does not answer after %v", startTimeout))
	defer cancel()
	var err error
	flags := append([]string{"-Xmx512m"}, n.flags...)
	if n.jvm, err = Run(n.jars, n.log(), append(flags, "kafka.Kafka", n.settings())...); err != nil {
		return err
	}
	client, err := n.client()
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if n.answers(ctx, admin) {
			return nil
		}
		select {
		case <-n.jvm.Done:
			return n.jvm.Err(errors.New("Kafka ended while starting"))
		case <-ctx.Done():
			n.jvm.Kill()
			return n.jvm.Err(context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// answers tells whether the node takes part in its cluster. A broker that only listens refuses topics.
func (n *Node) answers(ctx context.Context, admin *kadm.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	brokers, err := admin.ListBrokers(ctx)
	return err == nil && slices.Contains(brokers.NodeIDs(), n.ID)
}

// Address is the broker's host and port.
func (n *Node) Address() string { return fmt.Sprintf("127.0.0.1:%d", n.ports[0]) }

// client may do everything.
func (n *Node) client() (*kgo.Client, error) {
	options := []kgo.Opt{kgo.SeedBrokers(n.Address())}
	if len(n.users) > 0 {
		options = append(options, kgo.SASL(scram.Auth{User: n.users[0], Pass: n.users[0]}.AsSha256Mechanism()))
	}
	return kgo.NewClient(options...)
}

// Pid is that of the node's process.
func (n *Node) Pid() int { return n.jvm.Pid }

// CreateTopic makes a topic with a copy of each partition on each node.
func (n *Node) CreateTopic(ctx context.Context, name string, partitions int32) error {
	client, err := n.client()
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, partitions, n.size, nil, name)
	return err
}

// Kill ends the node as a crash does.
func (n *Node) Kill() { n.jvm.Kill() }

// Stop kills the node and removes its data.
func (n *Node) Stop() error {
	if n.jvm != nil {
		n.jvm.Kill()
	}
	return os.RemoveAll(n.dir)
}
