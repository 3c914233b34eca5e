package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Problem is a refusal, by RFC 9457.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Code   string `json:"code,omitempty"` // SQLSTATE, such as TM004
	Hint   string `json:"hint,omitempty"` // what to do
}

const problemType = "application/problem+json"

// Error is what was wrong.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is that of problems.
func (p *Problem) ContentType(string) string { return problemType }

func problem(status int, detail, hint string) *Problem {
	return &Problem{Status: status, Title: http.StatusText(status), Detail: detail, Hint: hint}
}

// asProblem turns what the parser of requests refuses into a Problem. Values are left out: they may be secrets.
func asProblem(_ huma.Context, _ string, v any) (any, error) {
	refused, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	detail := refused.Detail
	for _, e := range refused.Errors {
		detail += "; " + strings.TrimSpace(e.Location+" "+e.Message)
	}
	return problem(refused.Status, detail, ""), nil
}

// statusOf is the HTTP status of Tidemark's codes; of the others 409, a conflict with what is so.
var statusOf = map[string]int{
	"TM001": http.StatusUnprocessableEntity, "TM002": http.StatusUnprocessableEntity, "TM003": http.StatusUnprocessableEntity,
	"TM004": http.StatusNotFound, "TM005": http.StatusUnprocessableEntity, "TM007": http.StatusServiceUnavailable,
	"TM014": http.StatusForbidden, "42501": http.StatusForbidden,
}

// problem is what a client is told of an error. What is no refusal goes to the log.
func (s *server) problem(ctx context.Context, err error) error {
	var told *Problem
	if errors.As(err, &told) {
		return told
	}
	var refused *tidemark.Error
	if errors.As(err, &refused) {
		return s.refusal(refused.Code, refused.Message, refused.Hint)
	}
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && pgErr.Code == "42501":
		return s.refusal(pgErr.Code, pgErr.Message, cmp.Or(pgErr.Hint, "The database login of this server lacks a right: it has to be a member of tidemark_admin."))
	case errors.As(err, &pgErr) && pgErr.Code == "57014":
		return s.refusal(pgErr.Code, "it took longer than "+statementLimit.String(), "Ask for less: a shorter time, a smaller limit.")
	case errors.As(err, &pgErr) && pgErr.Code == "55P03":
		return s.refusal(pgErr.Code, pgErr.Message, cmp.Or(pgErr.Hint, "Something has locked what it needs: the overview says what. Try again."))
	case errors.As(err, &pgErr) && pgErr.Code == "40001":
		return s.refusal(pgErr.Code, pgErr.Message, cmp.Or(pgErr.Hint, "Another transaction has changed what it needs. Try again."))
	case errors.As(err, &pgErr) && pgErr.Code == "25006":
		return problem(http.StatusServiceUnavailable, "the database is read-only, perhaps a standby", "Connect the server to the primary.")
	case errors.As(err, &pgErr) && (pgErr.Code[:2] == "22" || pgErr.Code[:2] == "23"):
		return s.refusal(pgErr.Code, pgErr.Message, pgErr.Hint)
	case ctx.Err() != nil:
		return problem(http.StatusServiceUnavailable, "the request was given up", "")
	}
	s.Log.WarnContext(ctx, "request failed", "error", err)
	if strings.HasPrefix(err.Error(), "failed to encode args") { // pgx has no type for it; its text has the value
		return problem(http.StatusUnprocessableEntity, "a value does not fit its column, such as a number that is too large", "The log of this server has more.")
	}
	if errors.As(err, &pgErr) || errors.Is(err, pgx.ErrNoRows) {
		if unfit := s.unfit(ctx); unfit != nil {
			return unfit
		}
	}
	if errors.As(err, &pgErr) {
		return s.refusal(pgErr.Code, pgErr.Message, "The log of this server has more.")
	}
	return problem(http.StatusServiceUnavailable, "the database cannot be reached", "The log of this server has more; what was shown before may be old.")
}

// unfit is why the schema does not fit this build, where it does not: it may have changed since the server started.
func (s *server) unfit(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := store.CheckSchema(limited, s.Pool); errors.Is(err, tidemark.ErrSchema) {
		return problem(http.StatusServiceUnavailable, err.Error(), "The schema and this server have to be of releases that fit each other: see docs/UPGRADING.md.")
	}
	return nil
}

func (s *server) refusal(code, message, hint string) *Problem {
	status, known := statusOf[code]
	switch {
	case !known && (code[:2] == "22" || code[:2] == "23"):
		status = http.StatusUnprocessableEntity
	case !known:
		status = http.StatusConflict
	}
	p := problem(status, message, hint)
	p.Code = code
	return p
}
