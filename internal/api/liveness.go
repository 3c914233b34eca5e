package api

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

type ExecutorPath struct {
	Executor string `path:"executor"`
}

// Registration is what is expected of an executor.
type Registration struct {
	Kind             string   `json:"kind,omitempty" doc:"A kind of tidemark.heartbeat_kind; empty: unchanged, and external_worker for a new one."`
	Domains          []string `json:"domains,omitempty" doc:"That it covers; none: all."`
	CadenceSeconds   int      `json:"cadence_seconds" minimum:"1" maximum:"31536000" doc:"A heartbeat is expected every so many seconds."`
	ThresholdSeconds int      `json:"threshold_seconds,omitempty" minimum:"0" maximum:"31536000" doc:"Silence that raises an alert; 0: three times the cadence."`
	Reason           string   `json:"reason" minLength:"1" maxLength:"1024" doc:"Why, for the audit."`
}

func (s *server) liveness() {
	operation(s, "GET", "/heartbeats", "Executors, and when each was last heard", see,
		func(ctx context.Context, db *store.DB, in *ByName) (Names[store.Heartbeat], error) {
			all, err := db.Heartbeats(ctx, in.part())
			return names(all, *in, func(h store.Heartbeat) string { return h.ExecutorID }), err
		})
	act(s, "PUT", "/heartbeats/{executor}", "Register an executor whose heartbeats are watched, or change what is expected of it", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			ExecutorPath
			Body Registration
		},
		) (store.Heartbeat, error) {
			b := in.Body
			return db.HeartbeatRegister(ctx, store.Registration{
				ExecutorID: in.Executor, Kind: b.Kind, DomainScope: b.Domains, Cadence: time.Duration(b.CadenceSeconds) * time.Second,
				Threshold: time.Duration(b.ThresholdSeconds) * time.Second, Reason: b.Reason,
			})
		})
	act(s, "POST", "/heartbeats/{executor}/deregister", "Forget an executor: its silence is no alarm any more", configure,
		func(ctx context.Context, db *store.DB, in *struct {
			ExecutorPath
			Body Act
		},
		) (none, error) {
			return none{}, db.HeartbeatDeregister(ctx, in.Executor, in.Body.Reason)
		})
	operation(s, "GET", "/findings", "Findings that are open, worst first; or those that are over", see,
		func(ctx context.Context, db *store.DB, in *struct {
			ByName
			Closed bool `query:"closed"`
		},
		) (Names[store.Finding], error) {
			if in.Closed {
				return findings(ctx, in.ByName, db.ClosedFindings, store.Finding.ClosedPlace)
			}
			return findings(ctx, in.ByName, db.OpenFindings, store.Finding.OpenPlace)
		})
	act(s, "POST", "/findings/{id}/acknowledge", "Say that someone knows of a finding", operate,
		func(ctx context.Context, db *store.DB, in *struct {
			ID   int64 `path:"id" minimum:"1"`
			Body Act
		},
		) (store.Finding, error) {
			return db.FindingAck(ctx, in.ID, in.Body.Reason)
		})
	operation(s, "GET", "/audit", "Who changed what, when and why, the latest first", see,
		func(ctx context.Context, db *store.DB, in *struct {
			Paging
			Span
			Who    string `query:"who" doc:"A login or a person."`
			Object string `query:"object" doc:"A table, such as outbound_route, or a table and a key, such as outbound_route billing."`
			Before int64  `query:"before" minimum:"0"`
		},
		) (List[store.AuditEntry], error) {
			all, err := db.Audit(ctx, store.AuditFilter{
				Who: in.Who, Object: in.Object, Since: in.Since, Until: in.Until, Before: in.Before, Limit: in.Limit + 1,
			})
			return part(all, in.Limit, func(a store.AuditEntry) int64 { return a.ID }), err
		})
}

// findings reads a part of a list of findings.
func findings[P any](ctx context.Context, b ByName, read func(context.Context, *P, int) ([]store.Finding, error), at func(store.Finding) P) (some Names[store.Finding], err error) {
	after, err := place[P](b)
	if err != nil {
		return some, err
	}
	all, err := read(ctx, after, b.Limit+1)
	return places(all, b, at), err
}
