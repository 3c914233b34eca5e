package main

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/payload"
	"github.com/tidemarkhq/tidemark/internal/store"
)

var typeColumns = cli.Columns{
	{Flag: "enabled", Kind: cli.Bool, Default: "true", Usage: "=false: emit stores nothing of this type"},
	{Flag: "version", Kind: cli.Int, Default: "1", Usage: "version of the schema: a note, on which nothing depends"},
	{Flag: "description", Usage: "free text that says what it is for"},
}

func typeCommand() cli.Command {
	return cli.Command{
		Use: "type", Short: "The registry of event types and their schemas",
		Example: "  tidemark type set shop order.paid --schema order.paid.json",
		Sub: []cli.Command{
			typeList(),
			{
				Use: "show DOMAIN TYPE", Short: "Show an event type and its schema", Role: "tidemark_reader",
				Run: func(ctx context.Context, s *cli.Session) error {
					t, err := s.EventType(ctx, s.Arg(0), s.Arg(1))
					return typeShow(s, t, err)
				},
			},
			typeSet(),
			cli.Delete("DOMAIN TYPE", "Delete an event type that no route and no capture names; its events stay",
				func(ctx context.Context, s *cli.Session) error {
					return s.TypeDelete(ctx, s.Arg(0), s.Arg(1), s.Reason)
				}),
		},
	}
}

func typeList() cli.Command {
	var domain string
	return cli.Command{
		Use: "list", Short: "List event types", Role: "tidemark_reader",
		Flags: func(flags *pflag.FlagSet) { flags.StringVar(&domain, "domain", "", "only this domain") },
		Run: func(ctx context.Context, s *cli.Session) error {
			types, err := s.EventTypes(ctx, domain, store.Part{})
			if err != nil {
				return err
			}
			return cli.Table(s.Printer, "no event types; register one: tidemark type set DOMAIN TYPE", types,
				"DOMAIN|TYPE|VERSION|ENABLED|SCHEMA|DESCRIPTION",
				func(t store.EventType) cli.Row {
					return cli.Row{t.Domain, t.Type, t.Version, t.Enabled, t.Schema != nil, t.Description}
				})
		},
	}
}

func typeSet() cli.Command {
	var schema string
	var noSchema bool
	return cli.Command{
		Use: "set DOMAIN TYPE", Short: "Register or change an event type; a new domain is created", Role: "tidemark_admin",
		Reason: cli.MayGiveReason, Columns: typeColumns,
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&schema, "schema", "", "`FILE` with the JSON Schema of payloads; - is stdin")
			flags.BoolVar(&noSchema, "no-schema", false, "accept any JSON object as payload")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			changes, err := typeColumns.Changes(s.Flags)
			if err != nil {
				return err
			}
			switch {
			case noSchema && schema != "":
				return cli.Usagef("give --schema or --no-schema, not both")
			case noSchema:
				changes["schema"] = nil
			case schema != "":
				if changes["schema"], err = readSchema(s, schema); err != nil {
					return err
				}
			}
			t, err := s.TypeSet(ctx, s.Arg(0), s.Arg(1), changes, s.Reason)
			return typeShow(s, t, err)
		},
	}
}

func readSchema(s *cli.Session, name string) (document json.RawMessage, err error) {
	if name == "-" {
		document, err = io.ReadAll(s.In)
	} else {
		document, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	_, err = payload.Compile(document)
	return document, err
}

func typeShow(s *cli.Session, t store.EventType, err error) error {
	if err != nil {
		return err
	}
	return s.Show(t, "domain", t.Domain, "type", t.Type, "version", t.Version, "enabled", t.Enabled,
		"schema", cli.Or(t.Schema, "none: any JSON object"), "not checked by SQL", cli.Or(t.Unchecked,
			"-"), "description", t.Description)
}
