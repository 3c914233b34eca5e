package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// testLimit bounds a test delivery, whatever the timeout of its route: a person waits for it.
const testLimit = 20 * time.Second

func (s *server) routeTest() {
	register(s, "POST", "/routes/{route}/test", "Send one test delivery to the target of a route, now", operate,
		func(ctx context.Context, in *struct {
			RoutePath
			Body Act
		},
		) (store.RouteTested, error) {
			return s.testRoute(ctx, in.Route, in.Body.Reason)
		})
}

// testRoute sends between two transactions: a target that hangs must hold none open. The first keeps an answer for a request with
// the same Idempotency-Key, so that a test is never sent twice.
func (s *server) testRoute(ctx context.Context, route, reason string) (out store.RouteTested, err error) {
	key, request := repeatable(ctx)
	person, _ := PersonOf(ctx)
	answered := func(db *store.DB) error {
		if key == "" {
			return nil
		}
		text, err := json.Marshal(out)
		return errors.Join(err, db.AnswerEnd(ctx, person.Name, key, text))
	}
	var begun store.RouteTest
	var known json.RawMessage
	began := time.Now()
	err = s.transact(ctx, operate, func(db *store.DB) (err error) {
		if key != "" {
			if known, err = db.AnswerBegin(ctx, person.Name, key, request); err != nil || known != nil {
				return err
			}
		}
		if begun, err = db.RouteTest(ctx, route, reason); err != nil {
			return err
		}
		switch {
		case begun.Outcome != nil:
			out = begun.Done(time.Since(began))
		case s.Probe == nil:
			return problem(http.StatusNotImplemented, "this server does not test targets outside the database", "tidemark route test does, by the configuration of the daemon.")
		default:
			out = store.RouteTested{EventID: begun.EventID, Outcome: "unknown", Detail: "it is under way: the audit will have what comes of it"}
		}
		return answered(db)
	})
	switch {
	case err != nil:
		return out, err
	case known != nil:
		return out, json.Unmarshal(known, &out)
	case begun.Outcome != nil:
		return out, nil
	}

	limited, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	out = s.Probe(limited, begun)
	// A test whose client has gone is recorded too: it may have arrived.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return out, s.transact(ctx, operate, func(db *store.DB) error {
		return errors.Join(db.RouteTestNote(ctx, route, out, reason), answered(db))
	})
}
