package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

var domainColumns = cli.Columns{
	{
		Flag: "metadata-only", Kind: cli.Bool,
		Usage: "refuse payloads with a forbidden key (body, content, token, …) at any depth",
	},
	{
		Flag: "restricted", Kind: cli.Bool,
		Usage: "only roles that tidemark domain grant names may emit; =false: every emitter",
	},
	{Flag: "description", Usage: "free text that says what it is for"},
	{
		Flag: "payload-retention", Kind: cli.Optional,
		Usage: "erase payloads of its events after this time, such as '90 days' (at least an hour); empty: they stay as long as the event",
	},
}

func domainCommand() cli.Command {
	return cli.Command{
		Use: "domain", Short: "Namespaces of event types, and who may emit into them",
		Example: "  tidemark domain set shop --metadata-only",
		Sub: []cli.Command{
			{Use: "list", Short: "List domains", Role: "tidemark_reader", Run: domainList},
			{
				Use: "set DOMAIN", Short: "Create or change a domain", Role: "tidemark_admin", Reason: cli.MayGiveReason, Columns: domainColumns,
				Run: func(ctx context.Context, s *cli.Session) error {
					changes, err := domainColumns.Changes(s.Flags)
					if err != nil {
						return err
					}
					d, err := s.DomainSet(ctx, s.Arg(0), changes, s.Reason)
					return domainShow(s, d, err)
				},
			},
			cli.Delete("DOMAIN", "Delete a domain without types that nothing names",
				func(ctx context.Context, s *cli.Session) error { return s.DomainDelete(ctx, s.Arg(0), s.Reason) }),
			domainRights("grant", "to", "Let a role emit into a domain; roles without a grant no longer may",
				func(ctx context.Context, s *cli.Session, role string) (store.Domain, error) {
					return s.DomainGrant(ctx, s.Arg(0), role, s.Reason)
				}),
			domainRights("revoke", "from", "Revoke a grant; the domain stays restricted",
				func(ctx context.Context, s *cli.Session, role string) (store.Domain, error) {
					return s.DomainRevoke(ctx, s.Arg(0), role, s.Reason)
				}),
		},
	}
}

func domainList(ctx context.Context, s *cli.Session) error {
	domains, err := s.Domains(ctx)
	if err != nil {
		return err
	}
	return cli.Table(s.Printer, "no domains; create one: tidemark domain set DOMAIN", domains,
		"DOMAIN|METADATA ONLY|EMITTERS|TYPES|PAYLOADS STAY|DESCRIPTION",
		func(d store.Domain) cli.Row {
			return cli.Row{d.Domain, d.MetadataOnly, emitters(d), d.Types, d.PayloadRetention, d.Description}
		})
}

func domainRights(use, flag, short string, change func(context.Context, *cli.Session, string) (store.Domain, error)) cli.Command {
	var role string
	return cli.Command{
		Use: use + " DOMAIN", Short: short, Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&role, flag, "", "the `ROLE`: a login, or a role with logins as members")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if role == "" {
				return cli.Usagef("--%s ROLE is required", flag)
			}
			d, err := change(ctx, s, role)
			return domainShow(s, d, err)
		},
	}
}

func domainShow(s *cli.Session, d store.Domain, err error) error {
	if err != nil {
		return err
	}
	return s.Show(d, "domain", d.Domain, "metadata only", d.MetadataOnly, "emitters", emitters(d), "types", d.Types,
		"payload retention", d.PayloadRetention, "description", d.Description)
}

// emitters says who may emit into a domain.
func emitters(d store.Domain) string {
	if !d.Restricted {
		return "all"
	}
	return cli.Or(d.Emitters, "only Tidemark and its owner")
}
