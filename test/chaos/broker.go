package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/tidemarkhq/tidemark/internal/testkafka"
	"github.com/tidemarkhq/tidemark/internal/trial"
)

// The brokers that there are.
const (
	fakeKafka = "fake"  // in this process, behind a proxy
	realKafka = "kafka" // Apache Kafka, by the jars of KAFKA_JARS
)

// A broker has the topics of commands.
type broker struct {
	addr  string
	away  func(ctx context.Context, d time.Duration) error // it does not answer for so long
	cut   func(ctx context.Context) error                  // it breaks all its connections; the real one is killed and started again
	close func() error
}

func (h *harness) startBroker(ctx context.Context) (*broker, error) {
	if h.broker == realKafka {
		return startKafka(ctx)
	}
	return startFake(ctx)
}

// A disguised listener is reached by another address.
type disguised struct {
	net.Listener
	addr net.Addr
}

func (d disguised) Addr() net.Addr { return d.addr }

func startFake(ctx context.Context) (*broker, error) {
	var link *proxy
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(func(network, address string) (net.Listener, error) {
		var listen net.ListenConfig
		l, err := listen.Listen(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if link, err = newProxy(ctx, l.Addr().String()); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		return disguised{l, link.listener.Addr()}, nil
	}))
	if err != nil {
		return nil, err
	}
	return &broker{
		addr: link.addr(),
		away: func(ctx context.Context, d time.Duration) error {
			link.set(there, way{hold: true})
			link.set(back, way{hold: true})
			err := trial.Wait(ctx, d)
			link.set(there, way{})
			link.set(back, way{})
			return err
		},
		cut:   func(context.Context) error { link.cut(); return nil },
		close: func() error { link.close(); cluster.Close(); return nil },
	}, nil
}

func startKafka(ctx context.Context) (*broker, error) {
	jars := os.Getenv(testkafka.JarsVariable)
	if jars == "" {
		return nil, fmt.Errorf("-broker kafka needs %s: what scripts/kafka.sh prints", testkafka.JarsVariable)
	}
	node, err := testkafka.Start(ctx, jars)
	if err != nil {
		return nil, err
	}
	return &broker{
		addr: node.Address(),
		away: func(ctx context.Context, d time.Duration) error {
			if err := syscall.Kill(node.Pid(), syscall.SIGSTOP); err != nil {
				return err
			}
			err := trial.Wait(ctx, d)
			return errors.Join(err, syscall.Kill(node.Pid(), syscall.SIGCONT))
		},
		cut: func(ctx context.Context) error {
			node.Kill()
			return node.Restart(ctx)
		},
		close: node.Stop,
	}, nil
}
