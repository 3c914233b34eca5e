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
	act(s, "POST", "/verify", "Verify the installation in the background; it reads the whole log", operate,
		func(ctx context.Context, db *store.DB, in *struct{ Body Act }) (Verification, error) {
			if s.verification.shown(false).Running != nil {
				return Verification{}, errVerifies
			}
			if err := db.VerifyNote(ctx, in.Body.Reason, nil); err != nil {
				return Verification{}, err
			}
			person, _ := PersonOf(ctx)
			if !s.verify(person, in.Body.Reason) {
				return Verification{}, errVerifies
			}
			return s.verification.shown(false), nil
		})
	act(s, "POST", "/verify/cancel", "Cancel the verification that runs", operate,
		func(ctx context.Context, db *store.DB, in *struct{ Body Act }) (out none, err error) {
			s.verification.mu.Lock()
			defer s.verification.mu.Unlock()
			if s.verification.Running == nil {
				return out, problem(http.StatusConflict, "no verification runs", "")
			}
			if err := db.VerifyNote(ctx, in.Body.Reason, []byte(`{"cancelled": true}`)); err != nil {
				return out, err
			}
			s.verification.cancel()
			return out, nil
		})
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

// verify begins a verification, unless one runs.
func (s *server) verify(p Person, reason string) bool {
	v := &s.verification
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Running != nil {
		return false
	}
	v.Running = &VerifyBegun{time.Now(), p.Name, reason}
	ctx, cancel := context.WithTimeout(WithPerson(context.Background(), p), verifyLimit)
	v.cancel = cancel
	go func() {
		defer cancel()
		select {
		case <-s.Done:
			cancel()
		case <-ctx.Done():
		}
	}()
	go s.runVerify(ctx, cancel, Verified{VerifyBegun: *v.Running})
	return true
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
