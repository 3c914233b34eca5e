package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func newType(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "type", Short: "The registry of event types"}
	cmd.AddCommand(newTypeList(a), newTypeShow(a), newTypeSet(a))
	return cmd
}

func newTypeList(a *app) *cobra.Command {
	var domain string
	cmd := needs("tidemark_reader", &cobra.Command{
		Use:   "list",
		Short: "List event types",
		RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
			types, err := s.EventTypes(ctx, domain)
			if err != nil {
				return err
			}
			type e = store.EventType
			return rows(s.printer, "no event types; register one: tidemark type set DOMAIN TYPE", types,
				column[e]{"DOMAIN", func(e e) string { return e.Domain }},
				column[e]{"TYPE", func(e e) string { return e.Type }},
				column[e]{"VERSION", func(e e) string { return number(e.Version) }},
				column[e]{"ENABLED", func(e e) string { return yes(e.Enabled) }},
				column[e]{"SCHEMA", func(e e) string { return yes(e.Schema != nil) }},
				column[e]{"DESCRIPTION", func(e e) string { return e.Description }})
		}),
	})
	cmd.Flags().StringVar(&domain, "domain", "", "only this domain")
	return cmd
}

func newTypeShow(a *app) *cobra.Command {
	return needs("tidemark_reader", &cobra.Command{
		Use:   "show DOMAIN TYPE",
		Short: "Show an event type and its schema",
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			t, err := s.EventType(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return showType(s, t)
		}),
	})
}

func newTypeSet(a *app) *cobra.Command {
	var reason, schema, description string
	var version int
	var enabled, noSchema bool
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "set DOMAIN TYPE",
		Short: "Register an event type, and its domain where that is new, or change one",
	})
	flags := cmd.Flags()
	flags.BoolVar(&enabled, "enabled", true, "false: emit stores nothing of this type")
	flags.IntVar(&version, "version", 1, "version of the schema, for people")
	flags.StringVar(&schema, "schema", "", "file with the JSON Schema of payloads; - is stdin")
	flags.BoolVar(&noSchema, "no-schema", false, "take any JSON object as payload")
	flags.StringVar(&description, "description", "", "for people")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes := store.Changes{}
		if flags.Changed("enabled") {
			changes["enabled"] = enabled
		}
		if flags.Changed("version") {
			changes["version"] = version
		}
		if flags.Changed("description") {
			changes["description"] = description
		}
		switch {
		case noSchema && schema != "":
			return usagef("give --schema or --no-schema, not both")
		case noSchema:
			changes["schema"] = nil
		case schema != "":
			document, err := readSchema(s, schema)
			if err != nil {
				return err
			}
			changes["schema"] = document
		}
		t, err := s.TypeSet(ctx, args[0], args[1], changes, reason)
		if err != nil {
			return err
		}
		return showType(s, t)
	})
	return cmd
}

func readSchema(s *session, name string) (document json.RawMessage, err error) {
	if name == "-" {
		document, err = io.ReadAll(s.in)
	} else {
		document, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	_, err = payload.Compile(document)
	return document, err
}

func showType(s *session, t store.EventType) error {
	if s.json {
		return s.object(t)
	}
	return s.facts(
		fact{"domain", t.Domain}, fact{"type", t.Type}, fact{"version", number(t.Version)},
		fact{"enabled", yes(t.Enabled)}, fact{"schema", firstOf(string(t.Schema), "none: any JSON object")},
		fact{"not checked by SQL", firstOf(strings.Join(t.Unchecked, ", "), "-")},
		fact{"description", t.Description})
}
