package console

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// lookEvery is how often the database is asked whether something has changed, while a page listens.
	lookEvery = time.Second
	// lookLimit bounds that statement: of a database that is away, or whose tables are locked, the pages say so.
	lookLimit = 2 * time.Second
	// beatEvery is how often a stream says that it is there: proxies keep it, and a page that hears nothing asks by itself.
	beatEvery = 10 * time.Second
	// streamFor is how long a stream lasts. The browser then asks for another, and is refused if its session is over.
	streamFor = time.Minute
	// streamsMost is how many pages may listen at a time: each takes a connection of the server. Further ones ask by themselves.
	streamsMost = 100
	// sendLimit bounds how long a browser takes to receive a message.
	sendLimit = 5 * time.Second
)

// changes tells pages that something has changed. While at least one listens, one goroutine looks.
type changes struct {
	look func(context.Context) string // a mark, which is another one once something has changed
	seen func(at time.Time)           // is told of each change before the pages are: it was found by a look that began then

	mu        sync.Mutex
	listeners map[chan string]struct{} // each holds the mark that it was not told yet
	mark      string                   // that was seen last; empty: none yet
	stop      context.CancelFunc       // ends the looking; nil: no one looks
	ended     chan struct{}            // closed once the last one who looked has ended; nil: no one did
}

// listen returns where the mark comes, at once if it is known and then with each change, and what ends it. None is returned where as many
// listen as may.
func (c *changes) listen() (told <-chan string, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) >= streamsMost {
		return nil, nil
	}
	own := make(chan string, 1)
	c.listeners[own] = struct{}{}
	if c.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		before, ended := c.ended, make(chan struct{})
		c.stop, c.ended, c.mark = stop, ended, ""
		go c.run(ctx, before, ended)
	}
	if c.mark != "" {
		own <- c.mark
	}
	return own, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, own)
		if len(c.listeners) == 0 {
			c.stop()
			c.stop = nil
		}
	}
}

// run looks until ctx is done. It waits for the one that looked before it, so that there is never a second one.
func (c *changes) run(ctx context.Context, before <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	if before != nil {
		<-before
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, lookLimit)
		mark := c.look(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		c.tell(ctx, mark, began)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tell passes a mark on if it is another one, unless the looking has ended meanwhile.
func (c *changes) tell(ctx context.Context, mark string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mark == c.mark || ctx.Err() != nil {
		return
	}
	if c.mark != "" {
		c.seen(at)
	}
	c.mark = mark
	for own := range c.listeners {
		select {
		case <-own: // one that was not read yet is out of date
		default:
		}
		own <- mark
	}
}

// mark asks the database. That it does not answer is a mark too.
func (c *console) mark(ctx context.Context) string {
	mark, err := c.store.Mark(ctx)
	if err != nil {
		return "unknown"
	}
	return mark
}

// stream tells a page of changes, as server-sent events: each has the mark as its id, and the browser gives the last one when it asks
// for another stream, so nothing is missed in between.
func (c *console) stream(w http.ResponseWriter, r *http.Request) {
	told, leave := c.changes.listen()
	if told == nil {
		http.Error(w, "as many pages listen for changes as may", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep the messages until there are many
	out := http.NewResponseController(w)
	send := func(format string, a ...any) bool {
		_ = out.SetWriteDeadline(time.Now().Add(sendLimit))
		_, err := fmt.Fprintf(w, format, a...)
		return err == nil && out.Flush() == nil
	}
	beat, end := time.NewTicker(beatEvery), time.NewTimer(streamFor)
	defer beat.Stop()
	defer end.Stop()
	last := r.Header.Get("Last-Event-ID")
	for open := send("retry: 1000\n\n"); open; {
		select {
		case mark := <-told:
			event := "beat"
			if last != "" && mark != last {
				event = "change"
			}
			last = mark
			open = send("event: %s\nid: %s\ndata:\n\n", event, mark)
		case <-beat.C:
			open = send("event: beat\ndata:\n\n")
		case <-end.C:
			return
		case <-c.Done:
			return
		case <-r.Context().Done():
			return
		}
	}
}
