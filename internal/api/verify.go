package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	// verifyLimit bounds a verification, which reads the whole log.
	verifyLimit = time.Hour
	// detailMost is how many characters are kept of what a check found: it may name all findings.
	detailMost = 1000
)

// Verification is the verification of the installation that runs, and the last one that has ended. They are of this server, which knows
// them until it is restarted.
type Verification struct {
	Running *VerifyBegun `json:"running" doc:"null: none runs."`
	Last    *Verified    `json:"last" doc:"null: none has ended."`
}

// VerifyBegun is who asked for a verification, and why.
type VerifyBegun struct {
	StartedAt time.Time `json:"started_at"`
	StartedBy string    `json:"started_by"`
	Reason    string    `json:"reason"`
}

// Verified is what a verification found.
type Verified struct {
	VerifyBegun
	EndedAt time.Time     `json:"ended_at"`
	Problem *string       `json:"problem" doc:"Why it did not come to its end; null: it did."`
	Failed  int           `json:"failed" doc:"Checks that failed."`
	Warned  int           `json:"warned" doc:"Checks that warn."`
	Checks  []store.Check `json:"checks" doc:"What they found is cut after 1000 characters."`
}

// verification runs in the background, one at a time.
type verification struct {
	mu sync.Mutex
	Verification
	cancel context.CancelFunc
}

var errVerifies = problem(http.StatusConflict, "a verification runs already", "GET /verify shows it. Wait for its end, or cancel it.")

func (s *server) verifications() {
	register(s, "GET", "/verify", "The verification of the installation that runs, and what the last one found", see,
		func(ctx context.Context, _ *none) (Verification, error) {
			person, _ := PersonOf(ctx)
			return s.verification.shown(person.Role == Viewer), nil
		})
	register(s, "POST", "/verify", "Verify the installation in the background; it reads the whole log", operate,
		func(ctx context.Context, in *struct{ Body Act }) (Verification, error) {
			var begin, giveUp func()
			out, stands, err := transacted(ctx, s, func(db *store.DB) (Verification, error) {
				if begin, giveUp = s.reserveVerify(ctx, in.Body.Reason); begin == nil {
					return Verification{}, errVerifies
				}
				return s.verification.shown(false), db.VerifyNote(ctx, in.Body.Reason, nil)
			})
			switch {
			case begin == nil: // it is answered as before, or refused
			case stands:
				begin()
			default: // the audit does not have it
				giveUp()
			}
			return out, err
		})
	register(s, "POST", "/verify/cancel", "Cancel the verification that runs", operate,
		func(ctx context.Context, in *struct{ Body Act }) (none, error) {
			var cancel context.CancelFunc
			out, stands, err := transacted(ctx, s, func(db *store.DB) (out none, err error) {
				if cancel = s.verification.canceller(); cancel == nil {
					return out, problem(http.StatusConflict, "no verification runs", "")
				}
				return out, db.VerifyNote(ctx, in.Body.Reason, []byte(`{"cancelled": true}`))
			})
			if stands && cancel != nil {
				cancel()
			}
			return out, err
		})
}

// transacted does work once, in a transaction. stands: it is committed, or perhaps, where the answer to the commit was lost. A request
// that is repeated then is told that it was done, so what follows from it must be done.
func transacted[O any](ctx context.Context, s *server, work func(*store.DB) (O, error)) (out O, stands bool, err error) {
	worked := false
	err = s.transact(ctx, operate, func(db *store.DB) error {
		out, err = once(ctx, db, func() (O, error) { return work(db) })
		worked = err == nil
		return err
	})
	return out, worked && (err == nil || !store.Refused(err)), err
}

// shown is what a person sees of it. Details are not for viewers: they may quote a row.
func (v *verification) shown(viewer bool) Verification {
	v.mu.Lock()
	defer v.mu.Unlock()
	shown := v.Verification
	if viewer && shown.Last != nil {
		last := *shown.Last
		last.Checks = make([]store.Check, len(last.Checks))
		for i, c := range shown.Last.Checks {
			if c.Detail != "" {
				c.Detail = "the detail is for operators"
			}
			last.Checks[i] = c
		}
		shown.Last = &last
	}
	return shown
}

// canceller cancels the verification that runs; nil: none runs.
func (v *verification) canceller() context.CancelFunc {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Running == nil {
		return nil
	}
	return v.cancel
}

// reserveVerify takes the place of the verification that runs, until one of both functions is called. Nil: one runs.
func (s *server) reserveVerify(ctx context.Context, reason string) (begin, giveUp func()) {
	v := &s.verification
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Running != nil {
		return nil, nil
	}
	person, _ := PersonOf(ctx)
	begun := VerifyBegun{time.Now(), person.Name, reason}
	background, cancel := context.WithTimeout(WithPerson(context.Background(), person), verifyLimit)
	v.Running, v.cancel = &begun, cancel
	begin = func() {
		go func() {
			defer cancel()
			select {
			case <-s.Done:
			case <-background.Done():
			}
		}()
		go s.runVerify(background, cancel, Verified{VerifyBegun: begun})
	}
	return begin, func() {
		cancel()
		v.mu.Lock()
		defer v.mu.Unlock()
		v.Running = nil
	}
}

// runVerify verifies with the rights of the server's login, which sees each table that a worker reads.
func (s *server) runVerify(ctx context.Context, cancel context.CancelFunc, out Verified) {
	defer cancel()
	person, _ := PersonOf(ctx)
	err := pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		db := store.New(tx)
		if err := db.ActFor(ctx, person.Name, false, store.Patience{}); err != nil {
			return err
		}
		out.Checks, err = db.Verify(ctx)
		return err
	})
	for i, c := range out.Checks {
		if long := []rune(c.Detail); len(long) > detailMost {
			out.Checks[i].Detail = string(long[:detailMost]) + "…"
		}
		switch c.Status {
		case "fail":
			out.Failed++
		case "warn":
			out.Warned++
		}
	}
	if err != nil {
		why := map[error]string{context.Canceled: "it was cancelled", context.DeadlineExceeded: "it took longer than " + verifyLimit.String()}[ctx.Err()]
		if why == "" {
			why = s.problem(ctx, err).Error()
		}
		out.Problem = &why
	}
	out.EndedAt = time.Now()
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, requestLimit)
		defer cancel()
		err = s.transact(limited, operate, func(db *store.DB) error { return db.VerifyNote(limited, out.Reason, out.summary()) })
		if err != nil {
			s.Log.WarnContext(ctx, "cannot record the end of a verification", "error", err)
		}
	}
	s.verification.mu.Lock()
	defer s.verification.mu.Unlock()
	s.verification.Running, s.verification.Last = nil, &out
}

// summary is what the audit keeps of it.
func (v Verified) summary() []byte {
	return fmt.Appendf(nil, `{"checks": %d, "failed": %d, "warned": %d, "seconds": %.1f}`, len(v.Checks), v.Failed, v.Warned, v.EndedAt.Sub(v.StartedAt).Seconds())
}
