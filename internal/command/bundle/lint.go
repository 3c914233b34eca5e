package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/contract"
	"github.com/tidemarkhq/tidemark/internal/strict"
)

func (r *reader) fileProblem(file, format string, args ...any) {
	r.problems = append(r.problems, Problem{File: file, Text: fmt.Sprintf(format, args...)})
}

// schemas reads schemas/charge.capture.v1/payload.1.json and so on, and compares each version with all before it.
func (r *reader) schemas(c *Command) {
	if c.Command == "" {
		return
	}
	payloads := r.family(c, "payload", contract.Payload, &c.Payloads)
	r.family(c, "result", contract.Result, &c.Results)
	if len(payloads) == 0 || payloads[len(payloads)-1] == nil {
		return
	}
	var newest struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(c.Payloads[len(c.Payloads)-1], &newest) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
		if newest.Properties[name] == nil {
			r.problem(c.node, "parameter %s of %s is no property of its payload's schema", strict.Short(name), c.folder())
		}
	}
}

func (r *reader) family(c *Command, kind string, breaks func(older, newer *contract.Schema) []contract.Break, texts *[]json.RawMessage) (all []*contract.Schema) {
	for version := 1; version <= c.schemaVersion; version++ {
		name := fmt.Sprintf("schemas/%s/%s.%d.json", c.folder(), kind, version)
		text, found := r.files[name]
		r.used[name] = true
		all = append(all, nil)
		*texts = append(*texts, json.RawMessage(`{}`))
		if !found {
			r.problem(c.node, "%s is missing", name)
			continue
		}
		if r.notJSON(name, text) {
			continue
		}
		schema, problems := contract.Compile(text)
		for _, problem := range problems {
			r.fileProblem(name, "%s", problem)
		}
		if schema == nil {
			continue
		}
		for _, at := range schema.Formats() {
			r.notes = append(r.notes, Problem{File: name, Text: at + ": is only a note, which nothing checks: give a pattern as well"})
		}
		for older, before := range all[:version-1] {
			if before == nil {
				continue
			}
			for _, b := range breaks(before, schema) {
				r.fileProblem(name, "breaks schema version %d: %s", older+1, b)
			}
		}
		all[version-1], (*texts)[version-1] = schema, compact(text)
	}
	return all
}

func compact(text []byte) json.RawMessage {
	var short bytes.Buffer
	if json.Compact(&short, text) != nil {
		return text
	}
	return short.Bytes()
}

// notJSON notes what is wrong with a file of JSON, with the place if the syntax is.
func (r *reader) notJSON(file string, text []byte) bool {
	err := strict.Check(text)
	if err == nil {
		return false
	}
	p := Problem{File: file, Text: err.Error()}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := text[:min(max(int(syntax.Offset)-1, 0), len(text))]
		p.Line = bytes.Count(before, []byte("\n")) + 1
		p.Column = len(before) - bytes.LastIndexByte(before, '\n')
		p.Text = "is not JSON: " + syntax.Error()
	}
	r.problems = append(r.problems, p)
	return true
}

// Example is a file of examples/charge.capture.v1/.
type Example struct {
	Name          string          `json:"-"` // charge.capture.v1/captured
	Payload       json.RawMessage `json:"payload"`
	SchemaVersion int             `json:"schema_version"` // default: the newest
	Result        json.RawMessage `json:"result"`         // what the command answers; default: not compared
	Reason        command.Reason  `json:"reason"`         // why it is refused or fails; default: it succeeds
	After         []string        `json:"after"`          // names of examples that have run before it
}

// Short is the name within the command's folder.
func (e Example) Short() string { return path.Base(e.Name) }

// examples checks that each example fits the schemas, unless it shows a payload that does not.
func (r *reader) examples(c *Command) {
	folder, successes := "examples/"+c.folder(), 0
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if path.Dir(name) != folder || path.Ext(name) != ".json" {
			continue
		}
		r.used[name] = true
		if r.notJSON(name, r.files[name]) {
			continue
		}
		e := Example{Name: strings.TrimSuffix(strings.TrimPrefix(name, "examples/"), ".json")}
		decoder := json.NewDecoder(bytes.NewReader(r.files[name]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&e); err != nil {
			r.fileProblem(name, "must be an object with payload, and may have schema_version, result, reason and after: %v", err)
			continue
		}
		if e.Reason == "" {
			successes++
		}
		r.example(name, *c, &e)
		c.Examples = append(c.Examples, e)
	}
	if c.Command != "" && successes == 0 {
		r.problem(c.node, "%s has no example of a success: add %s/NAME.json with {\"payload\": …}", c.folder(), folder)
	}
}

func (r *reader) example(name string, c Command, e *Example) {
	e.SchemaVersion = cmp.Or(e.SchemaVersion, len(c.Payloads))
	version := e.SchemaVersion
	switch {
	case e.Payload == nil:
		r.fileProblem(name, "payload is missing")
		return
	case version < 1 || version > len(c.Payloads):
		r.fileProblem(name, "schema_version is %d, must be from 1 to %d", version, len(c.Payloads))
		return
	case e.Reason != "" && !slices.Contains(command.Reasons(), e.Reason):
		r.fileProblem(name, "reason is %s, must be a reason such as %s or %s", strict.Short(string(e.Reason)), command.ContractPayloadInvalid, command.SQLBusinessRule)
		return
	case e.Reason != "" && e.Result != nil:
		r.fileProblem(name, "has a result and a reason: a command that fails has no result")
	}
	violations, sound := misfits(c.Payloads[version-1], e.Payload)
	switch wanted := e.Reason == command.ContractPayloadInvalid; {
	case wanted && sound && violations == nil:
		r.fileProblem(name, "the payload fits its schema, and the reason is %s", e.Reason)
	case !wanted:
		for _, m := range violations {
			r.fileProblem(name, "payload: %s", m)
		}
	}
	if e.Result != nil {
		violations, _ := misfits(c.Results[len(c.Results)-1], e.Result)
		for _, m := range violations {
			r.fileProblem(name, "result: %s", strings.Replace(m, "the payload", "the result", 1))
		}
	}
}

// order checks what the examples come after: examples of a success, and no circles.
func (r *reader) order(b *Bundle) {
	for _, c := range b.Commands {
		for _, e := range c.Examples {
			if _, problem := b.Before(e); problem != "" {
				r.fileProblem("examples/"+e.Name+".json", "%s", problem)
			}
		}
	}
}

// Before are the examples that run before an example, in order, with the command of each.
func (b *Bundle) Before(e Example) (all []Step, problem string) {
	under := []string{e.Name}
	var visit func(Example) string
	visit = func(e Example) string {
		for _, name := range e.After {
			c, before := b.example(name)
			switch {
			case before == nil:
				return "after: there is no example " + strict.Short(name) + "; names are such as charge.capture.v1/captured"
			case before.Reason != "":
				return "after: " + name + " is no example of a success"
			case slices.Contains(under, name):
				return "after: " + name + " comes after itself"
			case slices.ContainsFunc(all, func(s Step) bool { return s.Example.Name == name }):
				continue
			}
			under = append(under, name)
			if problem := visit(*before); problem != "" {
				return problem
			}
			under = under[:len(under)-1]
			all = append(all, Step{c, *before})
		}
		return ""
	}
	problem = visit(e)
	return all, problem
}

// Step is an example of a command.
type Step struct {
	Command Command
	Example Example
}

func (b *Bundle) example(name string) (Command, *Example) {
	for _, c := range b.Commands {
		for i := range c.Examples {
			if c.Examples[i].Name == name {
				return c, &c.Examples[i]
			}
		}
	}
	return Command{}, nil
}

// scripts are what is to be in the database before the bundle is registered.
func (r *reader) scripts(b *Bundle) {
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if strings.HasPrefix(name, "sql/") && path.Ext(name) == ".sql" && !r.used[name] {
			b.Scripts = append(b.Scripts, Script{name, string(r.files[name])})
		}
	}
}

// misfits are the violations of a schema, if that can be compiled. If not, it has its own problem.
func misfits(schema, document json.RawMessage) (all []string, sound bool) {
	compiled, problems := contract.Compile(schema)
	if problems != nil {
		return nil, false
	}
	violations, err := compiled.Violations(document)
	if err != nil {
		return []string{err.Error()}, true
	}
	for _, v := range violations {
		all = append(all, v.String())
	}
	return all, true
}

// unused refuses files that nothing reads: their names are misspelt, or their command is gone. Files of sql/ are the service's.
func (r *reader) unused() {
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if !r.used[name] && (!strings.HasPrefix(name, "sql/") || path.Ext(name) != ".sql") {
			r.fileProblem(name, "belongs to nothing in service.yaml; names are schemas/COMMAND.vN/payload.N.json, …/result.N.json, examples/COMMAND.vN/NAME.json and sql/NAME.sql")
		}
	}
}
