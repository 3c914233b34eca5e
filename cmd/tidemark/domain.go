package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
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
				type d = store.Domain
				return rows(s.printer, "no domains; make one: tidemark domain set DOMAIN", domains,
					column[d]{"DOMAIN", func(d d) string { return d.Domain }},
					column[d]{"METADATA ONLY", func(d d) string { return yes(d.MetadataOnly) }},
					column[d]{"EMITTERS", func(d d) string { return emitters(d) }},
					column[d]{"TYPES", func(d d) string { return number(d.Types) }},
					column[d]{"DESCRIPTION", func(d d) string { return d.Description }})
			}),
		}),
		newDomainSet(a), newDomainGrant(a), newDomainRevoke(a),
	)
	return cmd
}

func newDomainSet(a *app) *cobra.Command {
	var reason, description string
	var metadataOnly, restricted bool
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   "set DOMAIN",
		Short: "Make a domain or change one",
	})
	flags := cmd.Flags()
	flags.BoolVar(&metadataOnly, "metadata-only", false, "refuse payloads with a forbidden key (body, content, token, …) at any depth")
	flags.BoolVar(&restricted, "restricted", false, "only the roles of tidemark domain grant may emit into it; =false: every emitter")
	flags.StringVar(&description, "description", "", "for people")
	reasonFlag(cmd, &reason)
	cmd.RunE = a.withSchema(func(ctx context.Context, s *session, args []string) error {
		changes := store.Changes{}
		if flags.Changed("metadata-only") {
			changes["metadata_only"] = metadataOnly
		}
		if flags.Changed("restricted") {
			changes["restricted"] = restricted
		}
		if flags.Changed("description") {
			changes["description"] = description
		}
		d, err := s.DomainSet(ctx, args[0], changes, reason)
		if err != nil {
			return err
		}
		return domainShown(s, d)
	})
	return cmd
}

func newDomainGrant(a *app) *cobra.Command {
	return domainRights(a, "grant", "to", "Let a role emit into a domain, which others may not from then on",
		func(s *session) domainRight { return s.DomainGrant })
}

func newDomainRevoke(a *app) *cobra.Command {
	return domainRights(a, "revoke", "from", "Take back a grant; the domain stays restricted",
		func(s *session) domainRight { return s.DomainRevoke })
}

type domainRight func(ctx context.Context, domain, role, reason string) (store.Domain, error)

func domainRights(a *app, use, flag, short string, right func(*session) domainRight) *cobra.Command {
	var role, reason string
	cmd := needs("tidemark_admin", &cobra.Command{
		Use:   use + " DOMAIN",
		Short: short,
		RunE: a.withSchema(func(ctx context.Context, s *session, args []string) error {
			if role == "" {
				return usagef("which role? --%s ROLE", flag)
			}
			d, err := right(s)(ctx, args[0], role, reason)
			if err != nil {
				return err
			}
			return domainShown(s, d)
		}),
	})
	cmd.Flags().StringVar(&role, flag, "", "the role: a login, or a role with logins as members")
	reasonFlag(cmd, &reason)
	return cmd
}

func domainShown(s *session, d store.Domain) error {
	if s.json {
		return s.object(d)
	}
	return s.facts(
		fact{"domain", d.Domain}, fact{"metadata only", yes(d.MetadataOnly)}, fact{"emitters", emitters(d)}, fact{"types", number(d.Types)},
		fact{"description", d.Description})
}

// emitters says who may emit into a domain.
func emitters(d store.Domain) string {
	switch {
	case !d.Restricted:
		return "all"
	case len(d.Emitters) == 0:
		return "none but Tidemark and its owner"
	}
	return strings.Join(d.Emitters, ", ")
}
