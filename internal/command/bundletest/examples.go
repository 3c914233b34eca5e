package bundletest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/bundle"
	"github.com/tidemarkhq/tidemark/internal/command/contract"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// command runs the examples of a command, each in a database of its own, and the traps with the first one that succeeds.
func (t *tester) command(ctx context.Context, c bundle.Command) error {
	var base *bundle.Example
	for i, e := range c.Examples {
		var problems []string
		err := t.within(ctx, func(s scratch) (err error) {
			problems, err = t.example(ctx, s, c, e)
			return err
		})
		if err != nil {
			return err
		}
		if t.note(t.bundle.Name(c), "example "+e.Short(), problems) && e.Reason == "" && base == nil {
			base = &c.Examples[i]
		}
	}
	if base == nil {
		t.skip(t.bundle.Name(c), "traps", "no example of a success passes")
		return nil
	}
	return t.traps(ctx, c, *base)
}

// before runs what the example comes after.
func (t *tester) before(ctx context.Context, s scratch, e bundle.Example) (problem string, err error) {
	steps, problem := t.bundle.Before(e)
	for i, step := range steps {
		a, err := s.ask(ctx, t.envelope(step.Command, step.Example, fmt.Sprintf("before-%d", i)).text())
		switch {
		case err != nil && ctx.Err() != nil:
			return "", err
		case err != nil:
			return "after " + step.Example.Name + ": " + t.Text(err), nil
		case a.Status != "processed":
			return "after " + step.Example.Name + ": wanted processed, found " + a.String(), nil
		}
	}
	return problem, nil
}

func (t *tester) example(ctx context.Context, s scratch, c bundle.Command, e bundle.Example) ([]string, error) {
	if problem, err := t.before(ctx, s, e); err != nil || problem != "" {
		return []string{problem}, err
	}
	was, err := s.state(ctx)
	if err != nil {
		return nil, err
	}
	asked := t.envelope(c, e, "example")
	a, err := s.ask(ctx, asked.text())
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return []string{t.Text(err)}, nil
	case e.Reason == command.ContractPayloadInvalid && a.Code == "" && t.unchecked(ctx, s, c):
		return nil, nil // by the keywords that the daemon checks, and lint: command_run takes it
	case e.Reason != "" && a.Code != e.Reason:
		return []string{fmt.Sprintf("wanted %s, found %s", e.Reason, a) + t.why(ctx, s, c, asked, a)}, nil
	case e.Reason != "":
		return s.left(ctx, was)
	case a.Status != "processed":
		return []string{"wanted processed, found " + a.String() + t.why(ctx, s, c, asked, a)}, nil
	}
	return resultProblems(c, e, a), nil
}

// unchecked tells whether SQL checks a part of the payload's schema only.
func (t *tester) unchecked(ctx context.Context, s scratch, c bundle.Command) bool {
	registered, err := s.db.Command(ctx, t.bundle.Name(c))
	return err == nil && len(registered.Unchecked) > 0
}

// why is PostgreSQL's own error of a command that failed: a result has none, since it goes to producers.
func (t *tester) why(ctx context.Context, s scratch, c bundle.Command, asked envelope, a answer) string {
	if !strings.HasPrefix(string(a.Code), "sql.") && a.Code != command.RuntimeInternal {
		return ""
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		return ""
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	payload, _ := asked["payload"].(json.RawMessage)
	err = store.New(tx).CommandCall(ctx, t.bundle.Name(c), payload, asked.context())
	if err == nil {
		return ""
	}
	return "; the function says: " + t.Text(err)
}

// resultProblems compares the result with its newest schema and with that of the example.
func resultProblems(c bundle.Command, e bundle.Example, a answer) (problems []string) {
	schema, _ := contract.Compile(c.Results[len(c.Results)-1]) // lint has compiled it
	result := a.Result
	if result == nil {
		result = []byte("null")
	}
	violations, err := schema.Violations(result)
	if err != nil {
		problems = append(problems, "the result "+err.Error())
	}
	for _, v := range violations {
		problems = append(problems, "the result does not fit its schema: "+v.String())
	}
	if e.Result == nil {
		return problems
	}
	wanted, err1 := command.Canonical(e.Result)
	found, err2 := command.Canonical(result)
	if err1 != nil || err2 != nil || string(wanted) != string(found) {
		problems = append(problems, fmt.Sprintf("wanted the result %s, found %s", wanted, found))
	}
	return problems
}
