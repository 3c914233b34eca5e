package daemon

import (
	"context"
	"reflect"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/systemd"
)

// Reload applies the parts of c that need no restart: the secrets, the networks that webhooks may call, the connections,
// and the files that these name. Each route opens its target again with its next event, and the consumer of commands joins its group
// again if its connection has changed. Reload returns the changed keys that only a restart applies. An error: c cannot be applied,
// and nothing of it is.
func (d *Daemon) Reload(c config.Config) (restart []string, err error) {
	ctx := context.Background() // a reload is not broken off
	d.tell(ctx, systemd.Reloading)
	defer d.tell(ctx, systemd.Ready)
	if d.ping.Load() != nil {
		again := c
		again.Ping = d.config.Ping
		ping, err := newPing(again)
		if err != nil {
			return nil, err
		}
		d.ping.Store(ping)
	}
	if err := d.targets.reload(c); err != nil {
		d.options.Log.WarnContext(ctx, "cannot close a connection", "error", err)
	}
	if d.consumer != nil && d.dialled.differs(d.commandsConnection) {
		d.consumer.Renew()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, handler := range d.deliverers {
		handler.Reopen()
	}
	return fixed(d.config, c), nil
}

// reloaded are the top-level keys that Reload applies, and log, whose level the caller applies.
var reloaded = map[string]bool{"secrets": true, "oauth2": true, "webhook": true, "connections": true, "log": true}

// fixed returns the other keys in which the configurations differ, including log.format.
func fixed(a, b config.Config) (keys []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		key, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("yaml"), ",")
		if key == "" || key == "-" || reloaded[key] {
			continue
		}
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			keys = append(keys, key)
		}
	}
	if a.Log.Format != b.Log.Format {
		keys = append(keys, "log.format")
	}
	return keys
}
