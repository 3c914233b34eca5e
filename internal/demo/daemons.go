package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/trial"
)

// An instance is a `tidemark run`, in this process.
type instance struct {
	name  string
	admin string
	stop  func() error // once
}

// configuration is what a file for `tidemark run` would say.
func (s *show) configuration(name string) config.Config {
	c := config.Default()
	c.Name = name
	c.Database.URL = config.NewSecret(s.url)
	c.Workers = []string{worker}
	c.Admin.Listen = "127.0.0.1:0"
	c.Secrets = map[string][]config.Secret{"demo": {config.NewSecret(s.receiver.secret())}}
	c.Webhook.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c.Connections = map[string]config.Connection{
		"nats":  {Kind: "nats", URL: s.nats.url},
		"kafka": {Kind: "kafka", Brokers: s.kafka.addresses},
	}
	return c
}

// startDaemon starts one that ends with stop, whatever becomes of ctx.
func (s *show) startDaemon(ctx context.Context, name string) error {
	log := slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := daemon.New(ctx, s.configuration(name), daemon.Options{Log: log.With("daemon", name), Stdout: &s.log, Version: "demo"})
	if err != nil {
		return fmt.Errorf("daemon %s: %w", name, err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(running) }()
	s.daemons = append(s.daemons, instance{name, "http://" + d.Addr(), func() error {
		cancel()
		if err := <-ended; err != nil {
			return fmt.Errorf("daemon %s: %w", name, err)
		}
		return nil
	}})
	return nil
}

func (s *show) stopDaemons() error {
	var errs []error
	for _, d := range s.daemons {
		errs = append(errs, d.stop())
	}
	return errors.Join(errs...)
}

// owner is the daemon that has the worker's lease. Empty: none has.
func (s *show) owner(ctx context.Context, db querier) (string, error) {
	var owner string
	err := db.QueryRow(ctx, `select coalesce(lease_owner, '') from tidemark.heartbeat where executor_id = $1`, worker+"/outbox/0").Scan(&owner)
	name, _, _ := strings.Cut(owner, "/")
	return name, err
}

// takeover stops the daemon that is at work and returns how long it took until another one was.
func (s *show) takeover(ctx context.Context, db querier) (from, to string, took time.Duration, err error) {
	if from, err = s.owner(ctx, db); err != nil {
		return "", "", 0, err
	}
	began := time.Now()
	i := slices.IndexFunc(s.daemons, func(d instance) bool { return d.name == from })
	if i < 0 {
		return "", "", 0, errors.New("no daemon is at work")
	}
	stopping := s.daemons[i]
	s.daemons = slices.Delete(s.daemons, i, i+1)
	if err := stopping.stop(); err != nil {
		return "", "", 0, err
	}
	for {
		if to, err = s.owner(ctx, db); err != nil || to != "" && to != from {
			return from, to, time.Since(began), err
		}
		if err := trial.Wait(ctx, 5*time.Millisecond); err != nil {
			return "", "", 0, err
		}
	}
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.text, nil))
}
