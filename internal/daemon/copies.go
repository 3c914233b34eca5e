package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// tidemark.copies_compare counts on these: see the arithmetic there.
const (
	copiesEvery = 5 * time.Second
	copiesTime  = 4 * time.Second // a look takes no longer, from listening to leaving the next mark
	copiesLate  = time.Second     // a look that begins later than this takes nothing that it hears for new
)

// A broker is where two copies of a database can hear each other: what is left there outlives no database, and belongs to none.
type broker struct {
	target     string // as findings name it
	connection any    // another one after a reload
	marks      func(place string) (marks, error)
}

// marks are left at a broker.
type marks interface {
	Heard(ctx context.Context) ([]string, error) // what others have left since the last look
	Leave(ctx context.Context, mark string) error
}

// copies leaves marks at the brokers of open targets, and listens for marks of another copy of the database that is live too. It reports
// what it hears, and stops nothing: a wrong alarm must not hold deliveries.
func (d *Daemon) copies(ctx context.Context) {
	listen(ctx, d.targets.brokers, d.watch, d.options.Log)
}

// listen has a listener for each open broker, so that one that hangs delays no look at another.
func listen(ctx context.Context, brokers func() []broker, db store.Querier, log *slog.Logger) {
	tick := time.NewTicker(time.Second) // a target that was opened meanwhile is looked at soon
	defer tick.Stop()
	var running sync.WaitGroup
	defer running.Wait()
	stops := map[any]context.CancelFunc{} // by connection
	for {
		open := map[any]bool{}
		for _, b := range brokers() {
			open[b.connection] = true
			if stops[b.connection] == nil {
				of, stop := context.WithCancel(ctx)
				stops[b.connection] = stop
				running.Go(func() { (&listener{broker: b, db: db, log: log}).run(of) })
			}
		}
		for connection, stop := range stops {
			if !open[connection] {
				stop()
				delete(stops, connection)
			}
		}
		select {
		case <-ctx.Done():
			for _, stop := range stops {
				stop()
			}
			return
		case <-tick.C:
		}
	}
}

// listener compares the marks of one broker with the database.
type listener struct {
	broker broker
	db     store.Querier
	log    *slog.Logger
	marks  marks     // nil: before the first mark
	last   time.Time // when the last look that could hear began
	ill    bool
}

func (l *listener) run(ctx context.Context) {
	tick := time.NewTicker(copiesEvery)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, copiesTime)
		err := l.look(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		// Once until a look succeeds again: texts of one error differ, such as in the port of this side. And not a warning: nothing is wrong but
		// that two copies would not be seen.
		if err != nil && !l.ill {
			l.log.InfoContext(ctx, "cannot compare copies of the database", "target", l.broker.target, "error", err)
		}
		l.ill = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *listener) look(ctx context.Context) error {
	began := time.Now()
	var heard []string
	var deaf error
	if l.marks != nil {
		heard, deaf = l.marks.Heard(ctx)
	}
	if began.Sub(l.last) > copiesEvery+copiesLate {
		heard = nil // it may have been there for long
	}
	if deaf == nil {
		l.last = began
	}
	place, mark, err := store.CopiesCompare(ctx, l.db, l.broker.target, heard)
	if err != nil || mark == "" {
		return err
	}
	if l.marks == nil {
		if l.marks, err = l.broker.marks(place); err != nil {
			return err
		}
	}
	if err := l.marks.Leave(ctx, mark); err != nil {
		return err
	}
	return deaf
}
