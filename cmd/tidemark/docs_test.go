package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/sql"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/cli.md names every command.
func TestEveryCommandIsDocumented(t *testing.T) {
	t.Parallel()
	text := read(t, "../../docs/cli.md")
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.HasSubCommands() || cmd.Name() == "help" || strings.HasPrefix(cmd.CommandPath(), "tidemark completion") {
			return
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "tidemark ")
		if !regexp.MustCompile("`" + path + "[` ]").MatchString(text) {
			t.Errorf("docs/cli.md does not tell of %q", path)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || len(cmd.Short) > 100 {
			t.Errorf("%s: short description %q", path, cmd.Short)
		}
	}
	walk(newRoot())
}

// Every command that the root's help lists has a group and an example.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	for _, cmd := range newRoot().Commands() {
		if cmd.GroupID == "" || cmd.Example == "" && cmd.Name() != "help" {
			t.Errorf("%s: group %q, example %q", cmd.Name(), cmd.GroupID, cmd.Example)
		}
		for line := range strings.Lines(cmd.Example) {
			if _, after, is := strings.Cut(line, "tidemark "); is {
				if err := wellFormed("tidemark " + after); err != nil {
					t.Errorf("%s: %v", strings.TrimSpace(line), err)
				}
			}
		}
	}
}

// A command's file uses internal/cli, and not the file of another command. The arrows go from root.go to the commands, and
// from route.go to route_replay.go.
func TestCommandsImportDownwards(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared, used := map[string]string{}, map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range file.Unresolved { // declared in another file, or imported
			used[name] = append(used[name], u.Name)
		}
		for object := range file.Scope.Objects {
			declared[object] = name
		}
	}
	for from, names := range used {
		for _, name := range names {
			to := declared[name]
			if to != "" && to != from && from != "root.go" && from != "main.go" && from != "man.go" && !strings.HasPrefix(to, strings.TrimSuffix(from, ".go")+"_") {
				t.Errorf("%s uses %s of %s", from, name, to)
			}
		}
	}
	if declared["newRoot"] != "root.go" {
		t.Error("nothing was parsed")
	}
}

// sqlFiles are the files of sql/code.
func sqlFiles(t *testing.T) []sql.File {
	t.Helper()
	files, err := sql.Code(sql.Files)
	if err != nil || len(files) == 0 {
		t.Fatal("no SQL", err)
	}
	return files
}

// docs/errors.md has every code that the SQL raises, and no other.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	raised := map[string]bool{}
	for _, file := range sqlFiles(t) {
		for _, m := range regexp.MustCompile(`errcode = '(TM\d{3})'`).FindAllStringSubmatch(file.Text, -1) {
			raised[m[1]] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (TM\d{3}) \|`).FindAllStringSubmatch(read(t, "../../docs/errors.md"), -1) {
		if !raised[m[1]] {
			t.Errorf("docs/errors.md has %s, which nothing raises", m[1])
		}
		delete(raised, m[1])
	}
	for code := range raised {
		t.Errorf("docs/errors.md lacks %s", code)
	}
}
