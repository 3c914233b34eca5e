package cli

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// Kind is how a flag becomes the value of a column.
type Kind int

// The kinds of columns.
const (
	Text     Kind = iota
	Optional      // an empty text is null
	Object        // a JSON object; an empty text is null
	Bool
	Int
	List      // of texts; an empty one is empty, not null
	Selection // List, but an empty one is null
)

// Column is a column of a configuration row and the flag that sets it.
type Column struct {
	Flag    string
	Kind    Kind
	Default string // of a new row
	Usage   string
	Name    string // default: Flag with _ for -
}

// Columns are the columns that a set command can change.
type Columns []Column

// add adds the flags.
func (all Columns) add(flags *pflag.FlagSet) {
	for _, c := range all {
		switch c.Kind {
		case Bool:
			flags.Bool(c.Flag, c.Default == "true", c.Usage)
		case Int:
			initial, _ := strconv.Atoi(c.Default)
			flags.Int(c.Flag, initial, c.Usage)
		case List, Selection:
			flags.StringSlice(c.Flag, nil, c.Usage)
		default:
			flags.String(c.Flag, c.Default, c.Usage)
		}
	}
}

// Changes reads the flags that were given.
func (all Columns) Changes(flags *pflag.FlagSet) (store.Changes, error) {
	changes := store.Changes{}
	for _, c := range all {
		if !flags.Changed(c.Flag) {
			continue
		}
		value, err := c.value(flags)
		if err != nil {
			return nil, err
		}
		changes[cmp.Or(c.Name, strings.ReplaceAll(c.Flag, "-", "_"))] = value
	}
	return changes, nil
}

// SomeChanges is Changes for commands that change nothing by themselves.
func (all Columns) SomeChanges(flags *pflag.FlagSet) (store.Changes, error) {
	changes, err := all.Changes(flags)
	if err == nil && len(changes) == 0 {
		err = NothingToChange()
	}
	return changes, err
}

// NothingToChange is the error of a set command without a column.
func NothingToChange() error {
	return Usagef("nothing to change: give at least one flag beside --reason")
}

func (c Column) value(flags *pflag.FlagSet) (any, error) {
	switch c.Kind {
	case Bool:
		return flags.GetBool(c.Flag)
	case Int:
		return flags.GetInt(c.Flag)
	case List:
		list, err := flags.GetStringSlice(c.Flag)
		return append([]string{}, list...), err
	case Selection:
		if list, err := flags.GetStringSlice(c.Flag); len(list) > 0 || err != nil {
			return list, err
		}
		return nil, nil
	}
	text, err := flags.GetString(c.Flag)
	switch {
	case c.Kind == Text || err != nil:
		return text, err
	case text == "":
		return nil, nil
	case c.Kind == Optional:
		return text, nil
	}
	var object map[string]json.RawMessage // 1e400 is none of float64, and jsonb has it
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		return nil, Usagef("--%s must be a JSON object", c.Flag)
	}
	return json.RawMessage(text), nil
}
