package main

import (
	"encoding/json"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// columnsOf says which columns flags set, by kind.
type columnsOf struct {
	texts    map[string]string // as they are
	optional map[string]string // an empty text is null
	objects  map[string]string // JSON objects; an empty text is null
	bools    map[string]string
	ints     map[string]string
	lists    map[string]string
}

// changes is what the flags that were given say, by the names of the columns.
func (c columnsOf) changes(flags *pflag.FlagSet) (store.Changes, error) {
	changes := store.Changes{}
	each := func(columns map[string]string, read func(flag string) any) {
		for flag, column := range columns {
			if flags.Changed(flag) {
				changes[column] = read(flag)
			}
		}
	}
	each(c.texts, func(flag string) any { text, _ := flags.GetString(flag); return text })
	each(c.optional, func(flag string) any {
		if text, _ := flags.GetString(flag); text != "" {
			return text
		}
		return nil
	})
	each(c.bools, func(flag string) any { is, _ := flags.GetBool(flag); return is })
	each(c.ints, func(flag string) any { n, _ := flags.GetInt(flag); return n })
	each(c.lists, func(flag string) any {
		list, _ := flags.GetStringSlice(flag)
		return append([]string{}, list...) // none is an empty list, not null
	})
	var err error
	each(c.objects, func(flag string) any {
		text, _ := flags.GetString(flag)
		if text == "" {
			return nil
		}
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil || object == nil {
			err = usagef("--%s must be a JSON object", flag)
		}
		return json.RawMessage(text)
	})
	return changes, err
}
