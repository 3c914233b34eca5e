package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
)

const signingKey = "whsec_dGhpcyBpcyBvbmx5IGZvciBiZW5jaG1hcmtz"

// routing is `tidemark run` in this process, for worker bench.
type routing struct {
	*env
	cancel context.CancelFunc
	ended  chan error
}

// startRouting returns when the daemon has begun; it may not have claimed the cursor yet.
func startRouting(ctx context.Context, e *env, change func(*config.Config)) (*routing, error) {
	c := config.Default()
	c.Name = "bench"
	c.Workers = []string{"bench"}
	c.Database.URL = config.NewSecret(e.dsn)
	c.Admin.Listen = ""
	c.Secrets = map[string][]config.Secret{"bench": {config.NewSecret(signingKey)}}
	c.Webhook.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	if change != nil {
		change(&c)
	}
	d, err := daemon.New(ctx, c, daemon.Options{Log: slog.New(slog.DiscardHandler), Stdout: io.Discard, Version: "bench"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &routing{env: e, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- d.Run(ctx) }()
	return r, nil
}

func (r *routing) stop() error {
	if r == nil {
		return nil
	}
	r.cancel()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(time.Minute):
		return errors.New("the daemon does not stop")
	}
}

// settled waits until the cursor has passed the log and the query, if there is one, gives true.
func (r *routing) settled(ctx context.Context, last int, also string) error {
	if also == "" {
		also = "true"
	}
	for began := time.Now(); ; {
		n, err := r.count(ctx, `
			select count(*) from tidemark.worker_cursor c
			 where c.worker = 'bench' and c.watermark_id::bigint >= $1 and isempty(c.holes + c.fenced) and `+also, last)
		if err != nil || n == 1 {
			return err
		}
		if time.Since(began) > 10*time.Minute {
			return fmt.Errorf("not settled after ten minutes")
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		case err := <-r.ended:
			r.ended <- err
			return fmt.Errorf("the daemon ended: %w", err)
		}
	}
}

// verified is tidemark's own check of its evidence.
func (e *env) verified(ctx context.Context) error {
	var failed string
	if err := e.conn.QueryRow(ctx, `
		select coalesce(string_agg(v."check" || ': ' || v.detail, '; '), '') from tidemark.verify() v where v.status = 'fail'`).
		Scan(&failed); err != nil {
		return err
	}
	if failed != "" {
		return errors.New("tidemark.verify: " + failed)
	}
	return nil
}
