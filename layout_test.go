package tidemark_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/sql"
)

// The arrows between packages go one way: cmd and the demo join, the others know only what is named here.
func TestArrows(t *testing.T) {
	t.Parallel()
	const module = "github.com/tidemarkhq/tidemark"
	allowed := map[string][]string{
		"":                             {"/internal/payload"},
		"/consumer":                    {"", "/internal/deliver", "/internal/limit", "/internal/store", "/internal/worker", "/sink"},
		"/client":                      {},
		"/sql":                         {},
		"/sql/test":                    {},
		"/sql/test/internal/oracle":    {},
		"/packs":                       {},
		"/packs/governance":            {},
		"/migrate":                     {"/sql"},
		"/sink":                        {""},
		"/sink/kafka":                  {"", "/internal/loopback", "/internal/mark", "/internal/oneline", "/sink"},
		"/sink/nats":                   {"", "/internal/loopback", "/internal/mark", "/internal/oneline", "/sink"},
		"/sink/stdout":                 {"", "/internal/oneline", "/sink"},
		"/sink/webhook":                {"", "/internal/target", "/sink"},
		"/examples/handler":            {"", "/consumer"},
		"/examples/orders":             {""},
		"/examples/clients":            {},
		"/examples/producers":          {},
		"/examples/producers/go":       {},
		"/examples/webhook-receiver":   {},
		"/internal/admin":              {"/internal/loopback"},
		"/internal/api":                {"", "/internal/packlist", "/internal/store", "/internal/strict"},
		"/internal/signin":             {"/internal/api", "/internal/loopback"},
		"/internal/consoleserver":      {"/console", "/internal/admin", "/internal/api", "/internal/config", "/internal/signin", "/internal/store", "/migrate"},
		"/console":                     {"/internal/api", "/internal/packlist", "/internal/store"},
		"/internal/config":             {"/internal/limit", "/internal/yamldoc"},
		"/internal/yamldoc":            {},
		"/internal/ascode":             {"/internal/payload", "/internal/store", "/internal/yamldoc"},
		"/internal/command/bundle":     {"/internal/command", "/internal/command/contract", "/internal/strict", "/internal/yamldoc"},
		"/internal/command/bundletest": {"/internal/command", "/internal/command/bundle", "/internal/command/contract", "/internal/store", "/migrate"},
		"/internal/limit":              {},
		"/internal/devpg":              {},
		"/internal/devpg/download":     {"/internal/devpg"},
		"/internal/failpoint":          {},
		"/internal/loopback":           {},
		"/internal/mark":               {},
		"/internal/metrictable":        {"/internal/docpage"},
		"/internal/docpage":            {},
		"/internal/oneline":            {},
		"/internal/exampledb":          {"/tidemarktest"},
		"/internal/target":             {"/sql"},
		"/internal/worker":             {"", "/internal/store", "/internal/failpoint"},
		"/internal/deliver":            {"", "/internal/store", "/internal/failpoint", "/sink"},
		"/internal/command/consumer":   {"/internal/command", "/internal/payload", "/internal/store", "/internal/worker"},
		"/internal/command/ingress":    {"", "/internal/command", "/internal/payload", "/internal/store", "/internal/strict"},
		"/internal/runtimes":           {"/internal/config", "/internal/consoleserver", "/internal/daemon"},
		"/internal/systemd":            {},
		"/internal/daemon":             {"", "/internal/admin", "/internal/command", "/internal/command/consumer", "/internal/command/ingress", "/internal/config", "/internal/deliver", "/internal/store", "/internal/systemd", "/internal/target", "/internal/worker", "/migrate", "/sink", "/sink/kafka", "/sink/nats", "/sink/stdout", "/sink/webhook"},
		"/internal/intake":             {"", "/internal/strict"},
		"/internal/command":            {"/internal/intake", "/internal/strict"},
		"/internal/command/contract":   {"/internal/command", "/internal/payload", "/internal/strict"},
		"/internal/payload":            {"/internal/oneline", "/internal/strict"},
		"/internal/packlist":           {"", "/internal/store", "/migrate", "/packs"},
		"/internal/store":              {""},
		"/internal/strict":             {},
		"/internal/demo":               {"", "/internal/command", "/internal/config", "/internal/consoleserver", "/internal/daemon", "/internal/devpg", "/internal/devpg/download", "/internal/store", "/internal/trial", "/migrate", "/packs"},
		"/internal/trial":              {},
		"/test/incidents":              {"/internal/devpg", "/internal/testserver", "/tidemarktest"},
		"/test/chaos":                  {"/internal/devpg", "/internal/devpg/download", "/internal/testkafka", "/internal/trial", "/migrate"},
		"/internal/testkafka":          {"/internal/devpg"},
		"/internal/testserver":         {"/internal/devpg", "/internal/devpg/download"},
		"/tidemarktest":                {"", "/internal/testserver", "/migrate", "/sink"},
		"/cmd/tidemark-demo":           {"/internal/demo"},
		"/deploy":                      {},
		"/deploy/compose":              {},
		"/deploy/grafana":              {},
		"/deploy/systemd":              {},
		"/internal/cli":                {"", "/internal/config", "/internal/oneline", "/internal/store", "/migrate", "/packs"},
		"/cmd/tidemark":                {"", "/internal/admin", "/internal/ascode", "/internal/cli", "/internal/command", "/internal/command/bundle", "/internal/command/bundletest", "/internal/command/consumer", "/internal/config", "/internal/consoleserver", "/internal/daemon", "/internal/devpg", "/internal/intake", "/internal/oneline", "/internal/packlist", "/internal/payload", "/internal/store", "/internal/systemd", "/internal/target", "/migrate", "/packs", "/sink"},
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		name := strings.TrimPrefix(paths[0], module)
		known, found := allowed[name]
		if !found {
			t.Errorf("%s is new: say here what it may import", paths[0])
		}
		for _, path := range paths[1:] {
			if inner, ours := strings.CutPrefix(path, module); ours && !slices.Contains(known, inner) {
				t.Errorf("%s imports %s", paths[0], path)
			}
		}
	}

	for _, path := range pulledIn(t, "./cmd/tidemark") {
		for _, server := range []string{"github.com/nats-io/nats-server/", "github.com/twmb/franz-go/pkg/kfake", "github.com/fergusstrange/", module + "/internal/demo", module + "/internal/devpg/download"} {
			if strings.HasPrefix(path, server) {
				t.Errorf("the command tidemark pulls in %s", path)
			}
		}
	}
	for _, path := range pulledIn(t, ".") {
		known := slices.ContainsFunc([]string{
			module, "github.com/jackc/", "golang.org/x/",
			// Emit checks payloads with it; it imports golang.org/x/text alone, as pgx does.
			"github.com/santhosh-tekuri/jsonschema/v6",
			// Emit takes the trace from its context.
			"go.opentelemetry.io/otel/", "github.com/cespare/xxhash/v2",
		}, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
		if !known {
			t.Errorf("the library package pulls in %s", path)
		}
	}
}

// pulledIn is what a package imports, and what that imports, outside the standard library.
func pulledIn(t *testing.T, name string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// The library knows by a constant how many migrations there are.
func TestMigrationsOfTheLibrary(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(sql.Files, "migrations/*.sql")
	if err != nil || len(files) != store.Migrations {
		t.Errorf("%d files in sql/migrations: set store.Migrations to it (%v)", len(files), err)
	}
}

// Only internal/store, the root package and migrate send SQL to the schema. Checkers, benchmarks and the demo write their own,
// to see what the product did.
func TestOnlyTheStoreSendsSQL(t *testing.T) {
	t.Parallel()
	senders := regexp.MustCompile(`^([^/]*\.go|(internal/(store|demo|trial|exampledb)|migrate|tidemarktest|test|bench)/.*)$`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || senders.MatchString(path) {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Query", "QueryRow", "Exec", "Queue"}, method.Sel.Name) {
				return true
			}
			for _, argument := range call.Args {
				ast.Inspect(argument, func(n ast.Node) bool {
					if text, ok := n.(*ast.BasicLit); ok && strings.Contains(text.Value, "tidemark.") {
						t.Errorf("%s sends SQL to the schema: it belongs into internal/store", files.Position(call.Pos()))
					}
					return true
				})
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
