package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/internal/runtimes"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// builds make a command of the program of docs/clients/api.md in a directory.
var builds = map[string]func(t *testing.T, dir, console string) []string{
	"go": func(t *testing.T, dir, _ string) []string {
		runtimes.Run(t, "../..", "go", "build", "-o", filepath.Join(dir, "replay"), filepath.Join(dir, "replay.go"))
		return []string{filepath.Join(dir, "replay")}
	},
	// The types are made of the committed document each time, so they cannot be behind it.
	"typescript": func(t *testing.T, dir, _ string) []string {
		modules := filepath.Join(runtimes.Installed(t, "clients-api"), "node_modules")
		runtimes.Need(t, "node")
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		document, err := filepath.Abs("../../internal/api/openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "package.json", `{"type": "module"}`)
		runtimes.Run(t, dir, "node", "node_modules/openapi-typescript/bin/cli.js", document, "-o", "tidemark.d.ts")
		runtimes.Run(t, dir, "node", "node_modules/typescript/bin/tsc", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "replay.ts")
		return []string{"node", "replay.js"}
	},
}

// The programs of docs/clients/api.md see and replay, once, what a console has.
func TestClientsOfTheAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler and a runtime for each language")
	}
	t.Parallel()
	for name, build := range builds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, dir := tidemarktest.NewDB(t), t.TempDir()
			for _, sql := range []string{
				`select tidemark.type_set('shop', 'order')`,
				`select tidemark.route_set('hook', '{"domain": "shop", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}')`,
				`select tidemark.emit('shop', 'order', '{}', key => 'order-' || i) from generate_series(1, 3) i`,
				`insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
					select 'tm:default:hook:' || o.event_id, w.id, r.id, o.seq, o.event_id, tidemark.event_json(o), 'http_500'
					from tidemark.outbox o, tidemark.outbound_route r, tidemark.worker w where w.worker = 'default'`,
			} {
				if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
			programs(t, dir, "api.md")
			console := strings.TrimSuffix(runtimes.Console(t, db.URL), "/")
			command := build(t, dir, console)
			run := func(token string) (string, error) {
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "TIDEMARK_URL="+console, "TIDEMARK_TOKEN="+token)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			want := "would replay 3\nreplays 3\n"
			if name == "typescript" {
				want += "3 order-3\n2 order-2\n1 order-1\n"
			}
			out, err := run("operator")
			if diff := cmp.Diff(want, out); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
			// The second time the same key is answered the same, and nothing is done.
			if out, err := run("operator"); err != nil || !strings.Contains(out, "replays 3") {
				t.Errorf("%v %s", err, out)
			}
			var jobs int
			if err := db.Pool.QueryRow(t.Context(), `select count(*) from tidemark.letter_job`).Scan(&jobs); err != nil || jobs != 1 {
				t.Errorf("%d jobs, %v", jobs, err)
			}
			if out, err := run("viewer"); err == nil || !strings.Contains(out, "this needs the role operator") {
				t.Errorf("%v %s", err, out)
			}
		})
	}
}
