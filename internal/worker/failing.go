package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// failingAfter is how often in a row the same thing may fail before it is a finding; a read that takes a lease twice.
const failingAfter = 5

// failing counts what fails in a row with the same code, at each place by itself, since a settle fails beside reads. It reports it by
// the finding worker_failing.
// The zero value has seen no failure.
type failing struct {
	report func(ctx context.Context, detail, message string) error // empty: it is over

	mu     sync.Mutex
	at     map[string]inARow // by place
	told   bool              // the finding is open, as far as this process knows
	closed time.Time         // when it was last told that it is over
	why    error
}

// inARow is how often a place has failed with the code.
type inARow struct {
	code  string
	times int
}

// sayWellAfter is how often that all is well is told again: another process may have told otherwise, and died.
const sayWellAfter = 10 * time.Second

// failed takes in that something did not go well.
func (f *failing) failed(ctx context.Context, place string, err error) {
	code := "no connection"
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		code = refused.Code
	case errors.Is(err, context.DeadlineExceeded):
		code = "no answer in time"
	}
	words := code
	if u := (*unreadError)(nil); errors.As(err, &u) {
		words = u.saying(code)
	}
	f.mu.Lock()
	row := f.at[place]
	if row.code != code {
		row = inARow{code: code}
	}
	row.times++
	if f.at == nil {
		f.at = map[string]inARow{}
	}
	f.at[place] = row
	// A read that takes as long as a lease each time is not repeated five times before it is told.
	tell := row.times%failingAfter == 0 || row.times == 2 && place == "read" && store.TooMuch(err)
	if tell {
		f.why = fmt.Errorf("%s fails again and again: %s", place, words) // the message is for the log: it may quote a payload
	}
	detail := fmt.Sprintf("it cannot %s, %d times in a row: %s", place, row.times, words)
	f.mu.Unlock()
	if tell && f.tell(ctx, detail, err.Error()) {
		f.mu.Lock()
		f.told = true
		f.mu.Unlock()
	}
}

// well takes in that a whole pass went well.
func (f *failing) well(ctx context.Context) {
	f.mu.Lock()
	f.at, f.why = nil, nil
	tell := f.told || time.Since(f.closed) >= sayWellAfter
	f.mu.Unlock()
	if tell && f.tell(ctx, "", "") {
		f.mu.Lock()
		f.told, f.closed = false, time.Now()
		f.mu.Unlock()
	}
}

// begun takes in that a tenure begins: the instance before may have told that it fails, and that all is well is told with the
// first pass.
func (f *failing) begun() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = time.Time{}
}

// over takes in that what failed at a place does not any more, without a whole pass.
func (f *failing) over(ctx context.Context, place string) {
	f.mu.Lock()
	_, failed := f.at[place]
	delete(f.at, place)
	over := f.told && failed && len(f.at) == 0
	f.mu.Unlock()
	if over {
		f.well(ctx)
	}
}

// tell reports. That it cannot is no reason to stop: it is tried again.
func (f *failing) tell(ctx context.Context, detail, message string) bool {
	ctx, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	return f.report(ctx, detail, message) == nil
}

// Why is what fails again and again; nil: nothing does.
func (f *failing) Why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}
