package daemon

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark/internal/store"
)

const (
	// tidemark.copies_compare counts on these two: how often a daemon looks, and how long after its note a mark can be left.
	copiesEvery = 5 * time.Second
	copiesTime  = 4 * time.Second
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

// listener compares the marks of one broker with the database.
type listener struct {
	connection any
	marks      marks // nil: before the first mark
	next       time.Time
	said       string
}

// copies leaves marks at the brokers of open targets, and listens for marks of another copy of the database that is live too. It reports
// what it hears, and stops nothing: a wrong alarm must not hold deliveries.
func (d *Daemon) copies(ctx context.Context) {
	tick := time.NewTicker(time.Second) // a target that was opened meanwhile is looked at soon
	defer tick.Stop()
	listeners := map[string]*listener{}
	for {
		open := map[string]*listener{}
		for _, b := range d.targets.brokers() {
			l := listeners[b.target]
			if l == nil || l.connection != b.connection {
				l = &listener{connection: b.connection}
			}
			open[b.target] = l
			if time.Now().Before(l.next) {
				continue
			}
			l.next = time.Now().Add(copiesEvery)
			limited, cancel := context.WithTimeout(ctx, copiesTime)
			err := l.look(limited, d.watch, b)
			cancel()
			now := ""
			if err != nil && ctx.Err() == nil {
				if now = err.Error(); now != l.said {
					// Not a warning: nothing is wrong but that two copies would not be seen.
					d.options.Log.InfoContext(ctx, "cannot compare copies of the database", "target", b.target, "error", err)
				}
			}
			l.said = now
		}
		listeners = open
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *listener) look(ctx context.Context, db store.Querier, b broker) error {
	var heard []string
	var deaf error
	if l.marks != nil {
		heard, deaf = l.marks.Heard(ctx)
	}
	place, mark, err := store.CopiesCompare(ctx, db, b.target, heard)
	if err != nil || mark == "" {
		return err
	}
	if l.marks == nil {
		if l.marks, err = b.marks(place); err != nil {
			return err
		}
	}
	if err := l.marks.Leave(ctx, mark); err != nil {
		return err
	}
	return deaf
}
