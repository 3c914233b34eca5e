package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

type ServicePath struct {
	Service string `path:"service"`
}

type ClaimPath struct {
	ServicePath
	Key string `path:"key" doc:"Idempotency key of the command."`
}

// ServiceDetails is a service, its commands and who may send them.
type ServiceDetails struct {
	store.Service
	Commands  []store.Command      `json:"commands"`
	Doing     []store.CommandDoing `json:"doing" doc:"What came of each command within the hour."`
	Producers []store.Producer     `json:"producers"`
	Keys      []store.ProducerKey  `json:"keys"`
}

// CommandReplay chooses parked commands to try again.
type CommandReplay struct {
	Since  time.Time `json:"since,omitzero"`
	Code   string    `json:"code,omitempty" doc:"Only with this reason code."`
	Failed bool      `json:"failed,omitempty" doc:"Those that failed for good, too."`
	After  int64     `json:"after,omitempty" minimum:"0" doc:"Go on after this record: next of the act before."`
	DryRun bool      `json:"dry_run,omitempty" doc:"Only count."`
	Reason string    `json:"reason,omitempty" maxLength:"1024" doc:"Needed unless dry_run."`
}

// CommandReplayed is what became of up to 500 commands.
type CommandReplayed struct {
	Outcomes map[string]int64 `json:"outcomes"`
	Next     *int64           `json:"next" doc:"Give it as after to go on; null: that was all."`
}

// CommandSeek names the next record of a partition.
type CommandSeek struct {
	Next   int64  `json:"next" minimum:"0" doc:"Offset of the next record that is read. Records that are passed over are not read."`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// NewKey is a public key by which a producer signs.
type NewKey struct {
	KID       string                     `json:"kid" minLength:"1"`
	Producer  string                     `json:"producer" minLength:"1" doc:"Whose key it is."`
	PublicKey map[string]json.RawMessage `json:"public_key" doc:"A JWK: kty OKP, crv Ed25519, and x. One with a private key is refused."`
	Tenants   []string                   `json:"tenants,omitempty" doc:"Only for these tenants; * is all; none: those of the allowlist."`
	Commands  []string                   `json:"commands,omitempty" doc:"Only for these commands; none: those of the allowlist."`
	From      time.Time                  `json:"valid_from,omitzero" doc:"Not for records before; none: now."`
	Until     *time.Time                 `json:"valid_until,omitempty" doc:"Not for records of this time or later; none: no end."`
	Reason    string                     `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

func (s *server) commands() {
	operation(s, "GET", "/services", "Services that offer commands", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Service, error) { return db.Services(ctx) })
	operation(s, "GET", "/services/{service}", "A service, its commands and its producers", see,
		func(ctx context.Context, db *store.DB, in *ServicePath) (d ServiceDetails, err error) {
			err = store.InTurn(
				func() error { d.Service, err = db.Service(ctx, in.Service); return err },
				func() error { d.Commands, err = db.Commands(ctx, in.Service); return err },
				func() error { d.Doing, err = db.CommandsDoing(ctx, in.Service); return err },
				func() error { d.Producers, err = db.Producers(ctx, in.Service); return err },
				func() error { d.Keys, err = db.ProducerKeys(ctx, in.Service); return err },
			)
			return d, err
		})
	operation(s, "GET", "/command-claims", "Commands that were taken, the latest first", see,
		func(ctx context.Context, db *store.DB, in *struct {
			ByName
			Service string `query:"service" required:"true"`
			State   string `query:"state" enum:"processed,failed_retryable,failed_terminal"`
		},
		) (some Names[store.CommandClaim], err error) {
			after, err := place[store.ClaimPlace](in.ByName)
			if err != nil {
				return some, err
			}
			all, err := db.CommandClaims(ctx, store.ClaimFilter{Service: in.Service, State: in.State, Limit: in.Limit + 1, After: after})
			return places(all, in.ByName, store.CommandClaim.Place), err
		})
	operation(s, "GET", "/command-claims/{name}", "The commands with an idempotency key or an event id", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Name string `path:"name"`
		},
		) ([]store.CommandClaim, error) {
			return db.CommandClaimsOf(ctx, in.Name)
		})
	operation(s, "GET", "/services/{service}/claims/{key}", "A command that was taken, by its idempotency key, and what it answered", see,
		func(ctx context.Context, db *store.DB, in *ClaimPath) (d store.ClaimDetails, err error) {
			claim, err := db.CommandClaim(ctx, in.Service, in.Key)
			if err != nil {
				return d, err
			}
			return db.ClaimDetails(ctx, claim)
		})
	act(s, "POST", "/services/{service}/claims/{key}/discard", "Give up a parked command: it has failed for good, and the next one of its ordering key is due", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			ClaimPath
			Body Act
		},
		) (claim store.CommandClaim, err error) {
			if _, err := db.CommandDiscard(ctx, in.Service, in.Key, in.Body.Reason); err != nil {
				return claim, err
			}
			return db.CommandClaim(ctx, in.Service, in.Key)
		})
	act(s, "PATCH", "/services/{service}/commands/{command}/{version}", "Change a command's policy", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			CommandPath
			Body Changes
		},
		) (store.Command, error) {
			return db.CommandSet(ctx, in.Service, in.Command, in.Version, in.Body.Set, in.Body.Reason)
		})
	act(s, "POST", "/services/{service}/replay", "Try parked commands again, up to 500", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			ServicePath
			Body CommandReplay
		},
		) (out CommandReplayed, err error) {
			b := in.Body
			out.Next, out.Outcomes, err = db.CommandReplay(ctx, store.CommandReplayAsk{
				Service: in.Service, Since: b.Since, Code: b.Code, Failed: b.Failed, DryRun: b.DryRun, Reason: b.Reason,
			}, 500, b.After)
			return out, err
		})
	act(s, "POST", "/topics/{topic}/partitions/{partition}/seek", "Set where the consumer of commands goes on in a partition", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			Topic     string `path:"topic"`
			Partition int    `path:"partition" minimum:"0"`
			Body      CommandSeek
		},
		) (store.CommandSought, error) {
			return db.CommandSeek(ctx, in.Topic, in.Partition, in.Body.Next, in.Body.Reason)
		})
	act(s, "POST", "/services/{service}/keys/{kid}/revoke", "Revoke a producer's key", configure,
		func(ctx context.Context, db *store.DB, in *keyGoes) (key store.ProducerKey, err error) {
			if err := keyOf(ctx, db, in.KeyPath); err != nil {
				return key, err
			}
			return db.ProducerKeyRevoke(ctx, in.KID, in.Body.Reason)
		})
	act(s, "POST", "/services/{service}/keys", "Register a producer's public key (Ed25519)", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			ServicePath
			Body NewKey
		},
		) (store.ProducerKey, error) {
			b := in.Body
			key, err := json.Marshal(b.PublicKey)
			if err != nil {
				return store.ProducerKey{}, err
			}
			return db.ProducerKeyAdd(ctx, store.ProducerKey{
				KID: b.KID, Service: in.Service, Producer: b.Producer, PublicKey: key, Tenants: b.Tenants, Commands: b.Commands,
				ValidFrom: b.From, ValidUntil: b.Until,
			}, b.Reason)
		})
}

// keyOf wants a key of the service.
func keyOf(ctx context.Context, db *store.DB, in KeyPath) error {
	keys, err := db.ProducerKeys(ctx, in.Service)
	if err != nil || slices.ContainsFunc(keys, func(k store.ProducerKey) bool { return k.KID == in.KID }) {
		return err
	}
	return &tidemark.Error{Code: "TM004", Message: fmt.Sprintf("service %s has no key %q", in.Service, in.KID), Hint: "Keys: tidemark command key list"}
}
