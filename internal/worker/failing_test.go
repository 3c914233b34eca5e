package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Another process may have told that the worker fails, and died: that all is well is told again now and then, not once.
func TestWellIsToldAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		f := failing{report: func(_ context.Context, detail, _ string) error {
			told = append(told, detail)
			if len(told) == 1 {
				return errors.New("no connection")
			}
			return nil
		}}
		f.well(t.Context()) // cannot be told
		f.well(t.Context())
		f.well(t.Context())
		if len(told) != 2 {
			t.Fatalf("told %d times, want 2", len(told))
		}
		f.begun() // under another lease
		f.well(t.Context())
		if len(told) != 3 {
			t.Errorf("told %d times under two leases, want 3", len(told))
		}
		time.Sleep(sayWellAfter)
		f.well(t.Context())
		f.well(t.Context())
		if len(told) != 4 {
			t.Errorf("told %d times, want 4", len(told))
		}
		for range failingAfter {
			f.failed(t.Context(), "claim", errors.New("no"))
		}
		f.over(t.Context(), "read")
		if len(told) != 5 || told[4] == "" {
			t.Errorf("told %q", told)
		}
		f.over(t.Context(), "claim") // and the lease is another's
		if len(told) != 6 || told[5] != "" {
			t.Errorf("told %q", told)
		}
	})
}

// A settle fails beside reads: what fails at one place does not hide how often another one did.
func TestFailingAtTwoPlaces(t *testing.T) {
	t.Parallel()
	var told []string
	f := failing{report: func(_ context.Context, detail, _ string) error {
		told = append(told, detail)
		return nil
	}}
	for range failingAfter {
		f.failed(t.Context(), "settle", errors.New("no"))
		f.failed(t.Context(), "read", errors.New("no"))
	}
	if len(told) != 2 || f.Why() == nil {
		t.Errorf("told %q", told)
	}
	f.over(t.Context(), "read")
	if len(told) != 2 {
		t.Errorf("told %q while the settle fails", told)
	}
	f.over(t.Context(), "settle")
	if len(told) != 3 || told[2] != "" || f.Why() != nil {
		t.Errorf("told %q", told)
	}
}

// The message of an error may quote a payload. What readers and pages without a sign-in see has its code.
func TestFailingTellsTheCode(t *testing.T) {
	t.Parallel()
	const secret = "4111-1111"
	var detail, message string
	f := failing{report: func(_ context.Context, d, m string) error {
		detail, message = d, m
		return nil
	}}
	for range failingAfter {
		f.failed(t.Context(), "settle", &pgconn.PgError{Code: "22P02", Message: "invalid input syntax: " + secret})
	}
	if detail != "it cannot settle, 5 times in a row: 22P02" || !strings.Contains(message, secret) {
		t.Errorf("%q, %q", detail, message)
	}
	if why := f.Why(); why == nil || why.Error() != "settle fails again and again: 22P02" {
		t.Error(why)
	}
}
