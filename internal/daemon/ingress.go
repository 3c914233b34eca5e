package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemarkhq/tidemark/internal/admin"
	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/command/ingress"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// server is the HTTP server for commands, with its connections.
type server struct {
	*ingress.Ingress
	listener net.Listener
	pool     *pgxpool.Pool
}

// newIngress begins to listen; nil: the configuration has no commands.ingress.listen.
func (d *Daemon) newIngress(ctx context.Context, registry *prometheus.Registry) (*server, error) {
	c := d.config.Commands.Ingress
	if c.Listen == "" {
		return nil, nil //nolint:nilnil // none
	}
	secure, err := ingressTLS(c)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		// Not wrapped: the command would take a network error for a lost connection to the database.
		return nil, fmt.Errorf("commands.ingress.listen: cannot listen: %s", err.Error())
	}
	pool, err := openPool(ctx, d.config, ingress.Connections)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	answers := newAnswers()
	registry.MustRegister(answers)
	producers := map[string]ingress.Producer{}
	for name, p := range c.Producers {
		producers[name] = ingress.Producer(p)
	}
	return &server{ingress.New(pool, ingress.Options{
		Listener: admin.Limit(listener, admin.MaxConns), TLS: secure, Producers: producers, Secrets: d.targets.texts, Log: d.options.Log,
		Observe: func(name store.CommandName, o store.CommandOutcome) {
			d.metrics.command(consumer.Outcome{CommandOutcome: o, CommandName: name})
		},
		Answered: func(status int) { answers.WithLabelValues(strconv.Itoa(status)).Inc() },
	}), listener, pool}, nil
}

// ingressTLS is nil if requests come unencrypted.
func ingressTLS(c config.Ingress) (*tls.Config, error) {
	if c.CertFile == "" {
		return nil, nil //nolint:nilnil // none
	}
	certificate, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("commands.ingress.cert_file: %w", err)
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	if c.ClientCAFile == "" {
		return secure, nil
	}
	text, err := os.ReadFile(c.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("commands.ingress.client_ca_file: %w", err)
	}
	secure.ClientCAs, secure.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !secure.ClientCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("commands.ingress.client_ca_file: has no certificate in PEM")
	}
	return secure, nil
}

// texts are those of a secret, as the configuration has them now.
func (t *targets) texts(name string) (all []string) {
	for _, one := range t.config.Load().Secrets[name] {
		all = append(all, one.Reveal())
	}
	return all
}

// IngressAddr returns the address of the HTTP server for commands, or an empty text without one.
func (d *Daemon) IngressAddr() string {
	if d.ingress == nil {
		return ""
	}
	return d.ingress.listener.Addr().String()
}

// end waits for the commands under way.
func (s *server) end(ctx context.Context) error {
	err := s.Shutdown(ctx)
	_ = s.listener.Close() // still open if Serve was never called
	return err
}

func newAnswers() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidemark_command_ingress_answers_total", Help: "Answers to commands over HTTP, by their status code.",
	}, []string{"code"})
}
