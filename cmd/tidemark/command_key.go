package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func commandKey() cli.Command {
	var service string
	return cli.Command{
		Use: "key", Short: "Public keys by which producers sign commands",
		Example: "  tidemark command key add shop-1 --service billing --producer web-shop --public-key shop-1.jwk",
		Sub: []cli.Command{
			{
				Use: "list", Short: "List the producers' keys", Role: "tidemark_reader",
				Flags: func(flags *pflag.FlagSet) {
					flags.StringVar(&service, "service", "", "only keys for this service")
				},
				Run: func(ctx context.Context, s *cli.Session) error {
					all, err := s.ProducerKeys(ctx, service)
					if err != nil {
						return err
					}
					return cli.Table(s.Printer, "no keys; register one: tidemark command key add KID", all, "KID|STATE|SERVICE|PRODUCER|VALID UNTIL",
						func(k store.ProducerKey) cli.Row {
							return cli.Row{k.KID, keyState(s, k), k.Service, k.Producer, cli.Or(k.ValidUntil, "-")}
						})
				},
			},
			commandKeyAdd(),
			cli.Delete("KID", "Delete a key that was revoked or has expired; its kid can never be registered again",
				func(ctx context.Context, s *cli.Session) error { return s.ProducerKeyDelete(ctx, s.Arg(0), s.Reason) }),
			{
				Use: "revoke KID", Short: "Revoke a key: nothing that it signed is taken any more, whenever that was", Role: "tidemark_admin",
				Reason: cli.NeedsReason,
				Run: func(ctx context.Context, s *cli.Session) error {
					k, err := cli.InTx(ctx, s, func(db *store.DB) (store.ProducerKey, error) {
						return db.ProducerKeyRevoke(ctx, s.Arg(0), s.Reason)
					})
					if err != nil {
						return err
					}
					return s.Result(k, "key %s: revoked", k.KID)
				},
			},
		},
	}
}

func keyState(s *cli.Session, k store.ProducerKey) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ValidUntil != nil && !s.Now.Before(*k.ValidUntil):
		return "expired"
	case s.Now.Before(k.ValidFrom):
		return "not yet valid"
	}
	return "valid"
}

func commandKeyAdd() cli.Command {
	var k store.ProducerKey
	var file string
	var tenants, commands []string
	var until time.Time
	return cli.Command{
		Use: "add KID", Short: "Register a producer's public key (Ed25519)", Role: "tidemark_admin", Reason: cli.MayGiveReason,
		Long: `Register a producer's public key, a JWK with "kty": "OKP", "crv": "Ed25519" and "x". A file with a private key is
refused. A kid is used once, also after its key was deleted: for a new key of the same producer choose another, and revoke the old one when nothing signed with
it is on its way any more. The times of records, as the brokers have them, decide whether a key was valid.`,
		Example: `  tidemark command key add shop-1 --service billing --producer web-shop --public-key shop-1.jwk
  tidemark command key add shop-2 --service billing --producer web-shop --public-key shop-2.jwk --valid-until 2027-01-31T00:00:00Z`,
		Flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&k.Service, "service", "", "service whose commands it may sign (required)")
			flags.StringVar(&k.Producer, "producer", "", "whose key it is (required)")
			flags.StringVar(&file, "public-key", "", "`FILE` with the JWK (required)")
			flags.StringSliceVar(&tenants, "tenants", nil, "only for these tenants; * is all; default: those of the allowlist")
			flags.StringSliceVar(&commands, "commands", nil, "only for these commands; default: those of the allowlist")
			flags.TimeVar(&k.ValidFrom, "valid-from", time.Time{}, []string{time.RFC3339}, "not for records before this `TIME`, as RFC 3339; default: now")
			flags.TimeVar(&until, "valid-until", time.Time{}, []string{time.RFC3339}, "not for records of this `TIME` or later; default: no end")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if k.Service == "" || k.Producer == "" || file == "" {
				return cli.Usagef("give --service, --producer and --public-key")
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
				return fmt.Errorf("%s is not a JWK: a JSON object with kty, crv and x", file)
			}
			k.KID, k.PublicKey, k.Tenants, k.Commands = s.Arg(0), text, tenants, commands
			if !until.IsZero() {
				k.ValidUntil = &until
			}
			added, err := cli.InTx(ctx, s, func(db *store.DB) (store.ProducerKey, error) { return db.ProducerKeyAdd(ctx, k, s.Reason) })
			if err != nil {
				return err
			}
			return s.Result(added, "key %s of %s: registered for %s", added.KID, added.Producer, added.Service)
		},
	}
}
