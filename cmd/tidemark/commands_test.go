package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every command that the docs show, that a hint names or that the doctor advises exists, has these flags, and has the
// arguments that it needs.
func TestCommandsInTheDocs(t *testing.T) {
	t.Parallel()
	for place, lines := range writtenCommands(t) {
		for _, line := range lines {
			if err := wellFormed(line); err != nil {
				t.Errorf("%s: %s: %v", place, line, err)
			}
		}
	}
	for _, line := range []string{
		"tidemark worker run --until-empty", "tidemark worker go default", "tidemark status --watch=2s --loud", "tidemark route show a b", "tidemark nothing",
	} {
		if wellFormed(line) == nil {
			t.Errorf("%s is taken for a command", line)
		}
	}
}

// writtenCommands is each place's commands: of pages those in code, of SQL and Go those in hints and explanations.
func writtenCommands(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for pattern, find := range map[string]*regexp.Regexp{
		"../../README.md":         commandInCode,
		"../../docs/*.md":         commandInCode,
		"../../docs/*/*.md":       commandInCode,
		"../../packs/*/README.md": commandInCode,
		"../../packs/*/pack.yaml": regexp.MustCompile(`(?m)^  - (tidemark [^:].*?)(?:, | one of |$)`),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range files {
			text := strings.ReplaceAll(read(t, name), "\\\n", " ")
			for _, m := range find.FindAllStringSubmatch(text, -1) {
				all[name] = append(all[name], strings.Join(m[1:], ""))
			}
		}
	}
	for _, file := range sqlFiles(t) {
		for _, m := range regexp.MustCompile(`'(tidemark [a-z][^'.]*)'`).FindAllStringSubmatch(strings.ReplaceAll(file.Text, "\\\n", " "), -1) {
			all[file.Path] = append(all[file.Path], m[1])
		}
	}
	for kind, text := range causeKinds(t) {
		for _, m := range regexp.MustCompile(`['"](tidemark .*)['"]`).FindAllStringSubmatch(text, -1) {
			line := strings.NewReplacer("''", "'", "{subject}", "default", "{worker}", "default", "{source}", "births").Replace(m[1])
			all["cause "+kind] = append(all["cause "+kind], line)
		}
	}
	places := slices.Collect(maps.Keys(all))
	for _, name := range []string{"../../README.md", "../../docs/operations.md", "../../docs/capture.md", "code/evidence/verify.sql", "cause cursor"} {
		if !slices.Contains(places, name) {
			t.Errorf("no command is found in %s", name)
		}
	}
	return all
}

// A line of a block, or code within a line, which may say the command's name only.
var commandInCode = regexp.MustCompile("(?m)^(?:\\$ |    )?(?:bin/)?(tidemark [a-z-].*)$|`(?:bin/)?(tidemark [a-z-][^`]*)`")

// wellFormed parses what a reader would type; "…" and a name in capitals stand for something.
func wellFormed(line string) error {
	words := shellWords(line)[1:]
	root := newRoot()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if cmd == root {
		return fmt.Errorf("there is no such command")
	}
	flagged, unknown := flagsOf(cmd, rest)
	if unknown != "" {
		return fmt.Errorf("it has no flag %s", unknown)
	}
	if len(rest) == 0 && !flagged {
		return nil // its name alone
	}
	var args []string
	for i := 0; i < len(rest); i++ {
		flag := lookup(cmd, rest[i])
		switch {
		case rest[i] == "--":
			return nil // another program's command
		case flag == nil:
			if rest[i] != "…" {
				args = append(args, rest[i])
			}
		case flag.NoOptDefVal == "" && !strings.Contains(rest[i], "="):
			i++
		}
	}
	if cmd.HasSubCommands() && len(args) > 0 {
		return fmt.Errorf("%s has no subcommand %s", cmd.CommandPath(), args[0])
	}
	return cmd.Args(cmd, args)
}

func flagsOf(cmd *cobra.Command, words []string) (flagged bool, unknown string) {
	for _, word := range words {
		switch {
		case word == "--":
			return flagged, unknown
		case strings.HasPrefix(word, "-") && lookup(cmd, word) == nil:
			unknown = word
		case strings.HasPrefix(word, "-"):
			flagged = true
		}
	}
	return flagged, unknown
}

func lookup(cmd *cobra.Command, word string) *pflag.Flag {
	name, _, _ := strings.Cut(word, "=")
	if long, ok := strings.CutPrefix(name, "--"); ok && long != "" {
		if flag := cmd.Flags().Lookup(long); flag != nil {
			return flag
		}
		return cmd.InheritedFlags().Lookup(long)
	}
	if short, ok := strings.CutPrefix(name, "-"); ok && len(short) == 1 {
		if flag := cmd.Flags().ShorthandLookup(short); flag != nil {
			return flag
		}
		return cmd.InheritedFlags().ShorthandLookup(short)
	}
	return nil
}

// shellWords splits a line as a shell would, up to a comment or another command.
func shellWords(line string) (words []string) {
	for _, m := range regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`).FindAllString(line, -1) {
		if slices.Contains([]string{"#", "&", "&&", "||", "|", ";", ">", "<", "2>"}, m) {
			break
		}
		word := strings.TrimRight(m, ";,")
		words = append(words, strings.NewReplacer(`"`, "", `'`, "").Replace(word))
		if word != m {
			break
		}
	}
	return words
}
