package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/postgres"
)

func newDomain(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "domain", Short: "Namespaces of event types"}
	cmd.AddCommand(
		needs("tidemark_reader", &cobra.Command{
			Use:   "list",
			Short: "List domains",
			RunE: a.withSchema(func(ctx context.Context, s *session, _ []string) error {
				domains, err := s.Domains(ctx)
				if err != nil {
					return err
				}
				type d = postgres.Domain
				return rows(s.printer, "no domains; make one: tidemark domain set DOMAIN", domains,
					column[d]{"DOMAIN", func(d d) string { return d.Domain }},
					column[d]{"METADATA ONLY", func(d d) string { return yes(d.MetadataOnly) }},
					column[d]{"TYPES", func(d d) string { return number(d.Types) }},
					column[d]{"DESCRIPTION", func(d d) string { return d.Description }})
			}),
		}),
		newDomainSet(a),
	)
	return cmd
}

func newDomainSet(a *app) *cobra.Command {
	var reason, description string
	var metadataOnly bool
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "set DOMAIN",
		Short: "Make a domain or change one",
	})
	flags := cmd.Flags()
	flags.BoolVar(&metadataOnly, "metadata-only", false, "refuse payloads with a forbidden key (body, content, token, …) at any depth")
	flags.StringVar(&description, "description", "", "for people")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes := postgres.Changes{}
		if flags.Changed("metadata-only") {
			changes["metadata_only"] = metadataOnly
		}
		if flags.Changed("description") {
			changes["description"] = description
		}
		d, err := s.DomainSet(ctx, args[0], changes, reason)
		if err != nil {
			return err
		}
		if s.json {
			return s.object(d)
		}
		return s.facts(
			fact{"domain", d.Domain}, fact{"metadata only", yes(d.MetadataOnly)}, fact{"types", number(d.Types)},
			fact{"description", d.Description})
	})
	return cmd
}
