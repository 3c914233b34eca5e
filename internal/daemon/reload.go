package daemon

import (
	"reflect"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/config"
)

// Reload takes over from c what needs no lease to be given up: the secrets, what webhooks may reach, the connections, and
// the files that they name. Each route opens its target anew with its next event. It returns the keys that differ and
// that only a restart applies.
func (d *Daemon) Reload(c config.Config) (restart []string, err error) {
	err = d.targets.reload(c)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, handler := range d.deliverers {
		handler.Reopen()
	}
	return fixed(d.config, c), err
}

// reloaded are the top-level keys that Reload takes over, and log, whose level the caller sets.
var reloaded = map[string]bool{"secrets": true, "oauth2": true, "webhook": true, "connections": true, "log": true}

// fixed are the other keys in which the configurations differ, and log.format.
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
