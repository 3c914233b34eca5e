package api

import (
	"context"

	"github.com/tidemarkhq/tidemark/internal/store"
)

type ExecutorPath struct {
	Executor string `path:"executor"`
}

func (s *server) liveness() {
	operation(s, "GET", "/heartbeats", "Executors, and when each was last heard", see,
		func(ctx context.Context, db *store.DB, _ *none) ([]store.Heartbeat, error) { return db.Heartbeats(ctx) })
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
			Paging
			Closed bool `query:"closed"`
		},
		) ([]store.Finding, error) {
			if in.Closed {
				return db.ClosedFindings(ctx, in.Limit)
			}
			return db.OpenFindings(ctx)
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
			return part(all, in.Limit, func(a store.AuditEntry) string { return number(a.ID) }), err
		})
}
