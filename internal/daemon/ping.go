package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// pingTime is for how long a call may take.
const pingTime = 10 * time.Second

// newPing returns nil where none is configured.
func newPing(c config.Config) (*webhook.Ping, error) {
	if c.Ping.URL.IsZero() {
		return nil, nil //nolint:nilnil // off
	}
	ping, err := webhook.NewPing(webhook.PingOptions{
		URL: c.Ping.URL.Reveal(), Allow: c.Webhook.Allow, Ports: webhookPorts(&c), CAFile: c.Webhook.CAFile,
	})
	if err != nil {
		return nil, fmt.Errorf("ping: %w", err)
	}
	return ping, nil
}

// pings calls the address while all is well, so that its silence tells of what the daemon itself cannot: that it is dead, stuck,
// or cut off. Nothing else is sent, and a call that failed is not repeated before the next one.
func (d *Daemon) pings(ctx context.Context) {
	tick := time.NewTicker(d.config.Ping.Every)
	defer tick.Stop()
	ping, said := d.ping.Load(), ""
	defer func() { _ = ping.Close() }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !d.watched.well() {
			continue
		}
		if now := d.ping.Load(); now != ping { // a reload has made another
			_ = ping.Close()
			ping = now
		}
		limited, cancel := context.WithTimeout(ctx, pingTime)
		err := ping.Call(limited)
		cancel()
		now := ""
		if err != nil && ctx.Err() == nil {
			if now = err.Error(); now != said {
				d.options.Log.WarnContext(ctx, "cannot ping", "error", err)
			}
		}
		said = now
	}
}
