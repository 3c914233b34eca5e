package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) {
	// The scripts call this very binary by the name of the command.
	if filepath.Base(os.Args[0]) == "tidemark" {
		os.Exit(run())
	}
	tidemarktest.Main(m, func() error { return goleak.Find() }, func() error { return os.RemoveAll(builtIn) })
}

// TestScripts runs testdata, each file with a database of its own. Beside testscript's
// own commands these can use:
//
//	exits N COMMAND ARG...   COMMAND ends with the exit status N
//	sql STATEMENT            rows go to stdout, "|" between their columns
//	emptydb                  from here on a database without the schema
//	adminserver CHECK...     starts an admin server; see adminServer
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Setup:              setupScript,
		Cmds:               scriptCommands(fakeKafka, secureFakeKafka),
	})
}

func scriptCommands(kafka, secure func(testing.TB, []string) string) map[string]func(*testscript.TestScript, bool, []string) {
	all := kafkaCommands(kafka, secure)
	maps.Copy(all, map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "sql": sqlCommand, "emptydb": emptyDB, "adminserver": adminServer,
	})
	return all
}

const urlVariable = "TIDEMARK_DATABASE_URL"

func setupScript(env *testscript.Env) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Join(env.WorkDir, ".bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(self, filepath.Join(bin, "tidemark")); err != nil {
		return err
	}
	t := env.T().(testing.TB)
	env.Values["t"] = t
	env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("GORACE", "atexit_sleep_ms=0") // else each command takes a second more
	env.Setenv(urlVariable, tidemarktest.NewDB(t).URL)
	repo, err := filepath.Abs("../..")
	env.Setenv("REPO", repo)
	env.Setenv("LATIN1", "M\xfcller") // a script cannot write it
	return err
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var status *exec.ExitError
	switch {
	case errors.As(err, &status):
		got = status.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func sqlCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql 'statement'")
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, ts.Getenv(urlVariable))
	ts.Check(err)
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, args[0]).ReadAll()
	ts.Check(err)
	for _, result := range results {
		for _, row := range result.Rows {
			var cells []string
			for _, cell := range row {
				cells = append(cells, string(cell))
			}
			fmt.Fprintln(ts.Stdout(), strings.Join(cells, "|"))
		}
	}
}

func emptyDB(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Setenv(urlVariable, tidemarktest.NewEmptyDB(ts.Value("t").(testing.TB)).URL)
}
