package main

import (
	"os"
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
		if cmd.HasSubCommands() {
			return
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "tidemark ")
		if !regexp.MustCompile("`" + path + "[` ]").MatchString(text) {
			t.Errorf("docs/cli.md does not tell of %q", path)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short description %q", path, cmd.Short)
		}
	}
	walk(newRoot())
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
