// Package bundle reads the folder in which a team keeps the contract of its service: service.yaml, schemas/, sql/ and examples/.
package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/strict"
	"github.com/tidemarkhq/tidemark/internal/yamldoc"
)

// Bundle is a service's contract.
type Bundle struct {
	Service        string     `json:"service"`
	Role           string     `json:"role,omitempty"`  // empty: the default of tidemark.service_set
	UnknownCommand string     `json:"unknown_command"` // result, dead_letter or both
	Description    string     `json:"description,omitempty"`
	Producers      []Producer `json:"producers"`
	Commands       []Command  `json:"commands"`
	Checksum       string     `json:"checksum"` // of all files
	Scripts        []Script   `json:"-"`        // files of sql/ in the order of their names, without those of statements
	Notes          []Problem  `json:"-"`        // what is sound, and may not do what it looks like
}

// Script is a file of sql/.
type Script struct{ Name, Text string }

// Producer may ask for a command.
type Producer struct {
	Producer string   `json:"producer"`
	Command  string   `json:"command,omitempty"` // empty: all
	Version  int      `json:"version,omitempty"` // 0: all
	Tenants  []string `json:"tenants,omitempty"` // "*": all, and none; nil: only commands without a tenant
}

// Command is a version of a command.
type Command struct {
	Command       string             `json:"command"`
	Version       int                `json:"version"`
	Function      string             `json:"function,omitempty"`
	Statement     string             `json:"statement,omitempty"` // the text
	Parameters    map[string]string  `json:"parameters,omitempty"`
	Payloads      []json.RawMessage  `json:"payload_schemas"` // of schema version 1, 2, …
	Results       []json.RawMessage  `json:"result_schemas"`
	Timeout       string             `json:"timeout,omitempty"`
	RetryPolicy   map[string]float64 `json:"retry_policy,omitempty"`
	Terminal      []string           `json:"terminal,omitempty"`
	Retention     string             `json:"retention,omitempty"`
	WhenDisabled  string             `json:"when_disabled"`
	Description   string             `json:"description,omitempty"`
	Examples      []Example          `json:"-"` // in the order of their names
	schemaVersion int
	node          *yaml.Node
}

// Name is billing.charge.capture/v1.
func (b *Bundle) Name(c Command) string {
	return fmt.Sprintf("%s.%s/v%d", b.Service, c.Command, c.Version)
}

func (c Command) folder() string { return fmt.Sprintf("%s.v%d", c.Command, c.Version) }

// Read reads a bundle and checks all of it. With problems the bundle may be incomplete.
func Read(dir string) (*Bundle, []Problem, error) {
	files, problems, err := load(dir)
	if err != nil {
		return nil, nil, err
	}
	r := &reader{yamlReader{file: "service.yaml", problems: problems}, files, map[string]bool{"service.yaml": true}, nil}
	b := r.service()
	for i := range b.Commands {
		r.schemas(&b.Commands[i])
		r.examples(&b.Commands[i])
	}
	r.order(b)
	r.scripts(b)
	if len(b.Commands) > 0 { // else service.yaml could not be read, and nothing belongs to anything
		r.unused()
	}
	b.Checksum, b.Notes = checksum(files), r.notes
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return b, r.problems, nil
}

const (
	mostBytes = 1 << 20
	mostFiles = 10_000
)

// load reads all files of a bundle. A README and hidden files are not of it.
func load(dir string) (files map[string][]byte, problems []Problem, err error) {
	files = map[string][]byte{}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(path.Base(name), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir(), name == "README.md":
			return nil
		case !entry.Type().IsRegular():
			problems = append(problems, Problem{File: name, Text: "is not a plain file"})
			return nil
		case len(files) == mostFiles:
			return fmt.Errorf("%s has more than %d files", dir, mostFiles)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Size() > mostBytes {
			problems = append(problems, Problem{File: name, Text: "is larger than 1 MiB"})
			return nil
		}
		files[name], err = root.ReadFile(name)
		return err
	})
	if err == nil && files["service.yaml"] == nil {
		err = errors.New(dir + " has no service.yaml")
	}
	return files, problems, err
}

// checksum is that of all names and contents, each after its length.
func checksum(files map[string][]byte) string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		for _, part := range [][]byte{[]byte(name), files[name]} {
			sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			sum.Write(part)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

type reader struct {
	yamlReader
	files map[string][]byte
	used  map[string]bool
	notes []Problem
}

func (r *reader) service() *Bundle {
	b := &Bundle{}
	root, problem := yamldoc.Parse(r.files["service.yaml"])
	switch {
	case problem != nil:
		r.problems = append(r.problems, Problem{File: r.file, Line: problem.Line, Text: problem.Text})
		return b
	case root == nil:
		r.problems = append(r.problems, Problem{File: r.file, Line: 1, Text: "is empty"})
		return b
	}
	fields := r.fields("", root, "service", "role", "unknown_command", "description", "producers", "commands")
	b.Service = r.text("service", r.needed(root, "service", fields["service"]))
	if problem := command.CheckService(b.Service); problem != "" && b.Service != "" {
		r.problem(fields["service"], "service %s", problem)
	}
	b.Role, b.Description = r.text("role", fields["role"]), r.text("description", fields["description"])
	b.UnknownCommand = r.choice("unknown_command", fields["unknown_command"], "result", "dead_letter", "both")
	commands := r.list("commands", r.needed(root, "commands", fields["commands"]))
	for i, one := range commands {
		c := r.command(fmt.Sprintf("commands[%d]", i), one, b.Service)
		if slices.ContainsFunc(b.Commands, func(other Command) bool { return other.folder() == c.folder() }) {
			r.problem(one, "%s is there twice", b.Name(c))
			continue
		}
		b.Commands = append(b.Commands, c)
	}
	for i, one := range r.list("producers", fields["producers"]) {
		r.producer(fmt.Sprintf("producers[%d]", i), one, b)
	}
	return b
}

// needed notes that a key is missing. It returns the value, which is nil then.
func (r *reader) needed(within *yaml.Node, path string, n *yaml.Node) *yaml.Node {
	if n == nil && within.Kind == yaml.MappingNode {
		r.problem(within, "%s is missing", path)
	}
	return n
}

func (r *reader) producer(path string, n *yaml.Node, b *Bundle) {
	fields := r.fields(path, n, "producer", "command", "version", "tenants")
	p := Producer{
		Producer: r.text(path+".producer", r.needed(n, path+".producer", fields["producer"])),
		Command:  r.text(path+".command", fields["command"]), Version: r.number(path+".version", fields["version"]),
		Tenants: r.texts(path+".tenants", fields["tenants"]),
	}
	matches := func(c Command) bool { return p.mayAsk(c) }
	switch {
	case p.Version > 0 && p.Command == "":
		r.problem(fields["version"], "%s.version needs a command", path)
	case p.Command != "" && !slices.ContainsFunc(b.Commands, matches):
		r.problem(fields["command"], "%s.command is %s, which is not under commands in this version", path, strict.Short(p.Command))
	}
	if slices.ContainsFunc(b.Producers, func(o Producer) bool {
		return o.Producer == p.Producer && o.Command == p.Command && o.Version == p.Version
	}) {
		r.problem(n, "%s says the same producer and command twice", path)
		return
	}
	b.Producers = append(b.Producers, p)
}

// Asker is the first producer that may ask for a command, as the row that decides about its tenants.
func (b *Bundle) Asker(c Command) (decides Producer, found bool) {
	for _, p := range b.Producers {
		narrower := p.Command != "" && decides.Command == "" || p.Version > 0 && decides.Version == 0
		if p.mayAsk(c) && (!found || p.Producer == decides.Producer && narrower) {
			decides, found = p, true
		}
	}
	return decides, found
}

func (p Producer) mayAsk(c Command) bool {
	return (p.Command == "" || p.Command == c.Command) && (p.Version == 0 || p.Version == c.Version)
}

var (
	functionForm  = regexp.MustCompile(`^[a-z_][a-z0-9_$]*\.[a-z_][a-z0-9_$]*$`)
	parameterForm = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	stateForm     = regexp.MustCompile(`^[0-9A-Z]{5}$`)
)

func (r *reader) command(at string, n *yaml.Node, service string) Command {
	fields := r.fields(at, n, "command", "version", "schema_version", "function", "statement", "parameters", "timeout", "retry_policy",
		"terminal", "retention", "when_disabled", "description")
	c := Command{
		Command: r.text(at+".command", r.needed(n, at+".command", fields["command"])), node: n,
		Version:       max(r.number(at+".version", r.needed(n, at+".version", fields["version"])), 1),
		schemaVersion: max(r.number(at+".schema_version", r.needed(n, at+".schema_version", fields["schema_version"])), 1),
		Function:      r.text(at+".function", fields["function"]),
		Parameters:    r.pairs(at+".parameters", fields["parameters"]),
		Timeout:       r.duration(at+".timeout", fields["timeout"], time.Millisecond, 10*time.Minute),
		RetryPolicy:   r.retryPolicy(at+".retry_policy", fields["retry_policy"]),
		Terminal:      r.texts(at+".terminal", fields["terminal"]),
		Retention:     r.duration(at+".retention", fields["retention"], time.Hour, 3650*24*time.Hour),
		WhenDisabled:  r.choice(at+".when_disabled", fields["when_disabled"], "hold", "reject"),
		Description:   r.text(at+".description", fields["description"]),
	}
	if problem := command.CheckCommand(service, c.Command); problem != "" && c.Command != "" {
		r.problem(fields["command"], "%s.command %s", at, problem)
	}
	if (fields["function"] == nil) == (fields["statement"] == nil) {
		r.problem(n, "%s must have either function or statement", at)
	}
	if c.Function != "" && !functionForm.MatchString(c.Function) {
		r.problem(fields["function"], "%s.function is %s, must be schema.function in lower case", at, strict.Short(c.Function))
	}
	if c.schemaVersion > 1000 {
		r.problem(fields["schema_version"], "%s.schema_version is more than 1000", at)
		c.schemaVersion = 1
	}
	for i, state := range c.Terminal {
		if !stateForm.MatchString(state) {
			r.problem(fields["terminal"], "%s.terminal[%d] is %s, must be a SQLSTATE such as P0002", at, i, strict.Short(state))
		}
	}
	r.statement(at, &c, fields)
	return c
}

func (r *reader) statement(at string, c *Command, fields map[string]*yaml.Node) {
	file := r.text(at+".statement", fields["statement"])
	if file == "" {
		if fields["parameters"] != nil && fields["statement"] == nil {
			r.problem(fields["parameters"], "%s.parameters are for a statement", at)
		}
		return
	}
	text, found := r.files[file]
	if !found || !strings.HasPrefix(file, "sql/") {
		r.problem(fields["statement"], "%s.statement is %s, must be a file of the folder sql/", at, strict.Short(file))
		return
	}
	r.used[file] = true
	c.Statement = strings.TrimSpace(string(text))
	if c.Statement == "" {
		r.problem(fields["statement"], "%s.statement: %s is empty", at, file)
	}
	for name := range c.Parameters {
		if !parameterForm.MatchString(name) {
			r.problem(fields["parameters"], "%s.parameters has %s, must be a lower-case name", at, strict.Short(name))
		}
	}
}

func (r *reader) retryPolicy(at string, n *yaml.Node) map[string]float64 {
	if n == nil {
		return nil
	}
	policy := map[string]float64{}
	limits := map[string][2]float64{"max_attempts": {1, 100}, "base_seconds": {0, 86400}, "max_seconds": {0, 86400}, "jitter": {0, 1}}
	fields := r.fields(at, n, "max_attempts", "base_seconds", "max_seconds", "jitter")
	for name, limit := range limits {
		var number float64
		if fields[name] == nil {
			continue
		}
		if fields[name].Decode(&number) != nil || number < limit[0] || number > limit[1] || name == "max_attempts" && number != float64(int(number)) {
			r.problem(fields[name], "%s.%s must be a number from %v to %v", at, name, limit[0], limit[1])
		}
		policy[name] = number
	}
	return policy
}
