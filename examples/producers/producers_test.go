// Package producers_test runs the examples of producers, each with the client of its language.
package producers_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/runtimes"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/packs"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m, func() error { return goleak.Find() }) }

// private is the key of RFC 8032, section 7.1, test 1.
const private = `{"kty": "OKP", "crv": "Ed25519", "kid": "shop-1", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}`

// programs are commands that take KEY and PAYLOAD. Without what it needs a program skips its test.
var programs = map[string]func(t *testing.T) []string{
	"go": func(t *testing.T) []string {
		binary := filepath.Join(t.TempDir(), "ask")
		runtimes.Run(t, ".", "go", "build", "-o", binary, "./go")
		return []string{binary}
	},
	"python": func(t *testing.T) []string {
		python := filepath.Join(runtimes.Installed(t, "python"), "bin", "python")
		return []string{python, "python/ask.py"}
	},
	"typescript": func(t *testing.T) []string {
		modules := filepath.Join(runtimes.Installed(t, "typescript"), "node_modules")
		runtimes.Need(t, "node")
		dir := t.TempDir()
		for _, file := range []string{"ask.ts", "tsconfig.json", "package.json"} {
			text, err := os.ReadFile(filepath.Join("typescript", file))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		runtimes.Run(t, dir, "node", filepath.Join(modules, "typescript/bin/tsc"))
		return []string{"node", filepath.Join(dir, "dist/ask.js")}
	},
	"java": func(t *testing.T) []string {
		jars := os.Getenv("KAFKA_JARS")
		if jars == "" {
			t.Skip("no client library for Java: set KAFKA_JARS to what scripts/kafka.sh prints, as make test does")
		}
		runtimes.Need(t, "javac")
		dir := t.TempDir()
		runtimes.Run(t, ".", "javac", "-Xlint:all,-path,-processing", "-Werror", "-d", dir, "-cp", filepath.Join(jars, "*"), "java/Ask.java")
		return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", dir + string(os.PathListSeparator) + filepath.Join(jars, "*"), "Ask"}
	},
}

// Each program asks, unsigned on the service's topic and signed on the shared one, hears the result, and hears of a failure.
func TestProducers(t *testing.T) {
	if testing.Short() {
		t.Skip("a compiler and a runtime for each language")
	}
	t.Parallel()
	w := start(t)
	invoice := 0
	for language, program := range programs {
		base := invoice
		invoice += 10
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			ask := program(t)
			asks := func(key string, invoice int, customer string, signed bool) (result, error) {
				return w.ask(t, ask, key, fmt.Sprintf(`{"invoice": %d, "customer": %q, "cents": 1200}`, invoice, customer), signed)
			}
			// The key and the customer need more than ASCII on the way.
			key := language + "-é-"
			first, err := asks(key+"1", base+1, "ada", false)
			if err != nil || first.Status != "processed" {
				t.Errorf("%+v, %v", first, err)
			}
			again, err := asks(key+"1", base+1, "ada", false)
			if err != nil || again.Status != "duplicate" || again.OriginalStatus != "processed" || string(again.Result) != string(first.Result) || again.EventID == first.EventID {
				t.Errorf("again: %+v, %v", again, err)
			}
			refused, err := asks(key+"2", base+2, "stranger é", false)
			if err == nil || refused.Status != "failed_terminal" || refused.ErrorCode != "sql.business_rule" {
				t.Errorf("without a card: %+v, %v", refused, err)
			}
			signed, err := asks(key+"3", base+3, "ada", true)
			if err != nil || signed.Status != "processed" {
				t.Errorf("signed: %+v, %v", signed, err)
			}
			var vias string
			if err := w.db.Pool.QueryRow(t.Context(), `select string_agg(via, ' ' order by idempotency_key) from tidemark.command_claim where idempotency_key like $1 || '%'`, key).
				Scan(&vias); err != nil || vias != "acl acl jws" {
				t.Errorf("claims by %q, %v", vias, err)
			}
		})
	}
}

type result struct {
	EventID        string `json:"event_id"`
	Status         string
	OriginalStatus string          `json:"original_status"`
	ErrorCode      string          `json:"error_code"`
	Result         json.RawMessage `json:"result"`
}

type world struct {
	db      *tidemarktest.DB
	address string
	key     string // file
}

// start runs a daemon over the pack commands-demo, and a broker.
func start(t *testing.T) world {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "db-events", "db-events.billing", "db-results.billing", "db-dlq.billing"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	w := world{tidemarktest.NewDB(t), cluster.ListenAddrs()[0], filepath.Join(t.TempDir(), "shop-1.jwk")}
	if err := os.WriteFile(w.key, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := w.db.Pool.Exec(context.Background(), `drop owned by tidemark_service_billing, tidemark_service_user; drop role tidemark_service_billing, tidemark_service_user`)
		if err != nil {
			t.Error(err)
		}
	})
	pack, _, err := packs.Find("commands-demo")
	if err == nil {
		err = pgx.BeginFunc(t.Context(), w.db.Pool, func(tx pgx.Tx) error {
			_, err := store.New(tx).InstallPack(t.Context(), pack.Name, pack.Version, pack.Checksum, pack.SQL)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`select tidemark.stage_set('live', 'test')`,
		`select tidemark.route_set('results.billing', '{"enabled": true, "dry_run": false}')`,
		`select tidemark.command_set('billing', 'charge.capture', 1, '{"enabled": true, "dry_run": false}')`,
		`select tidemark.producer_key_add('shop-1', 'billing', 'shop', '{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}')`,
		`select tidemark.gate_set(gate, true) from unnest(array['commands.enabled', 'commands.billing.enabled', 'routes.enabled', 'worker.default.enabled']) gate`,
	} {
		if _, err := w.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	runtimes.Daemon(t, w.db.URL, w.address, func(c *config.Config) {
		c.Commands.Connection = "main"
		c.Commands.Cluster = "test-é"
	})
	return w
}

// ask runs a program, and returns the last result that it prints, and how it ends.
func (w world) ask(t *testing.T, program []string, key, payload string, signed bool) (got result, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program[0], append(program[1:], key, payload)...)
	cmd.Env = append(os.Environ(), "KAFKA="+w.address, "LC_ALL=C.UTF-8")
	if signed {
		cmd.Env = append(cmd.Env, "SIGNING_KEY="+w.key, "CLUSTER=test-é")
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if problem := json.Unmarshal([]byte(lines[len(lines)-1]), &got); problem != nil {
		t.Errorf("%v prints %q, %q: %v", program, &stdout, &stderr, err)
	}
	return got, err
}

// The README's example of a signature is what the daemon takes, and its bytes are those that are signed.
func TestREADME(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) string {
		t.Helper()
		got := regexp.MustCompile(`(?m)^` + name + ` +(\S.*)$`).FindSubmatch(text)
		if got == nil {
			t.Fatalf("the README has no line %s", name)
		}
		return string(got[1])
	}
	var jwk struct{ X, D string }
	if err := json.Unmarshal([]byte(find("private key")), &jwk); err != nil {
		t.Fatal(err)
	}
	seed, err := base64.RawURLEncoding.DecodeString(jwk.D)
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	record := command.Record{Cluster: find("cluster"), Topic: find("topic"), Key: []byte(find("key")), Value: []byte(find("value"))}
	if _, err := command.Verify(find("header"), record, func(string) (command.Key, bool) {
		return command.Key{Public: key.Public().(ed25519.PublicKey)}, true
	}); err != nil {
		t.Error(err)
	}
	protected, signature, _ := strings.Cut(find("header"), "..")
	covered, err := hex.DecodeString(strings.ReplaceAll(find("covered"), " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	input := protected + "." + base64.RawURLEncoding.EncodeToString(covered)
	if signature != base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(input))) {
		t.Error("what the README says is covered is not what is signed")
	}
}
