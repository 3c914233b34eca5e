// Package compose_test checks what compose.yaml hands to Tidemark. Docker runs the rest, and is not at hand where the tests run.
package compose_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m) }

// The routes are made, and made again; the configuration has what they name; an event then waits for a delivery to each.
func TestCompose(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	setup, err := os.ReadFile("setup.sql")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		conn, err := db.Pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Conn().PgConn().Exec(t.Context(), string(setup)).ReadAll()
		conn.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	var live string
	if err := db.Pool.QueryRow(t.Context(), `select string_agg(route_code, ' ' order by route_code) from tidemark.outbound_route where enabled and not dry_run`).
		Scan(&live); err != nil || live != "billing bus" {
		t.Errorf("live are %q, %v", live, err)
	}

	var file struct {
		Services map[string]struct {
			Environment map[string]any
			Volumes     []string
		}
	}
	text, err := os.ReadFile("compose.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	daemon := file.Services["tidemark"]
	var environ []string
	for name, value := range daemon.Environment {
		environ = append(environ, name+"="+value.(string))
	}
	c, err := config.Load("tidemark.yaml", environ)
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Services["receiver"].Environment["WEBHOOK_SECRETS"]; c.Secrets["billing"][0].Reveal() != got {
		t.Errorf("the receiver knows another key: %v", got)
	}
	if c.Connections["main"].Brokers[0] != "kafka:19092" || !strings.Contains(c.Database.URL.Reveal(), "@postgres:5432/") {
		t.Errorf("%+v", c.Connections)
	}
	for _, service := range file.Services {
		for _, volume := range service.Volumes {
			name, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(name); strings.HasPrefix(name, ".") && err != nil {
				t.Error(err)
			}
		}
	}
}
