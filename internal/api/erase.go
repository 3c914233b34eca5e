package api

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// EventErasure chooses events whose payloads are erased.
type EventErasure struct {
	Subject string    `json:"subject,omitempty" doc:"Only events whose subject_ref this is."`
	Key     string    `json:"key,omitempty" doc:"Only events with this ordering key."`
	Before  time.Time `json:"before,omitzero" doc:"Only events created before."`
	After   int64     `json:"after,omitempty" minimum:"0" doc:"Go on after this number: next of the act before."`
	DryRun  bool      `json:"dry_run,omitempty" doc:"Only count."`
	Reason  string    `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// EventsErased is what an erasure came to.
type EventsErased struct {
	store.Erased
	Next *int64 `json:"next" doc:"Give it as after to go on; null: that was all."`
}

// CommandErasure chooses commands of which nothing but that they ran is kept.
type CommandErasure struct {
	Tenant string    `json:"tenant,omitempty" doc:"Only commands of this tenant."`
	Key    string    `json:"key,omitempty" doc:"Only the command with this idempotency key."`
	Before time.Time `json:"before,omitzero" doc:"Only commands that came to their state before."`
	DryRun bool      `json:"dry_run,omitempty" doc:"Only count."`
	Reason string    `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

// CommandsErased is what an erasure came to.
type CommandsErased struct {
	store.ErasedCommands
	More bool `json:"more" doc:"There are more: ask again."`
}

func (s *server) erasures() {
	act(s, "POST", "/domains/{domain}/erase", "Erase payloads of events, such as those of a person: up to 10000 of them", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			DomainPath
			Body EventErasure
		},
		) (out EventsErased, err error) {
			b := in.Body
			out.Erased, err = db.EventsErasePart(ctx, store.Erase{
				Domain: in.Domain, Subject: b.Subject, Key: b.Key, Before: b.Before, Reason: b.Reason, DryRun: b.DryRun,
			}, b.After)
			if !out.Complete {
				out.Next = &out.LastSeq
			}
			return out, err
		})
	act(s, "POST", "/services/{service}/erase", "Erase what is kept of commands, such as those of a tenant; that they ran stays", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			ServicePath
			Body CommandErasure
		},
		) (out CommandsErased, err error) {
			b := in.Body
			out.ErasedCommands, err = db.CommandsErasePart(ctx, store.CommandsErase{
				Service: in.Service, Tenant: b.Tenant, Key: b.Key, Before: b.Before, Reason: b.Reason, DryRun: b.DryRun,
			})
			out.More = !out.Complete
			return out, err
		})
}
