package consumer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// frames tells which records have JSON behind the frame that serializers of a schema registry write: a zero byte, and the number of the
// schema. What a number means never changes; one that the registry does not have may get a meaning.
type frames struct {
	registry *sr.Client // nil: no record has a frame
	woken    chan struct{}

	mu      sync.Mutex
	known   map[uint32]answer
	wanted  map[uint32]time.Time // schemas to ask for, and when; zero: now, and never asked for yet
	failing error                // of the registry
}

// An answer is what the registry says of a schema.
type answer struct {
	problem string    // with records of the schema; empty: none
	until   time.Time // it is asked again then; zero: never
}

const (
	frameLength = 5
	mostFrames  = 10000 // numbers are the producers'
	mostWanted  = 1000
	missingFor  = 10 * time.Second
	mostOfError = 200
)

func newFrames(registry *sr.Client) *frames {
	return &frames{registry: registry, woken: make(chan struct{}, 1), known: map[uint32]answer{}, wanted: map[uint32]time.Time{}}
}

// framed is the number of the schema in the frame of a record; not ok: it has none.
func (f *frames) framed(record []byte) (id uint32, ok bool) {
	if f.registry == nil || len(record) < frameLength || record[0] != 0 {
		return 0, false
	}
	return binary.BigEndian.Uint32(record[1:]), true
}

// value is that of a record without its frame. problem: the record is refused. Not ok: the registry is being asked.
func (f *frames) value(record []byte) (value []byte, problem string, ok bool) {
	id, framed := f.framed(record)
	switch {
	case !framed:
		return record, "", true
	case id > math.MaxInt32: // registries answer as if there were no such page
		return record[frameLength:], fmt.Sprintf("the record names schema %d, and no registry has numbers above %d", id, math.MaxInt32), true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[id]
	if ok && (known.until.IsZero() || time.Now().Before(known.until)) {
		return record[frameLength:], known.problem, true
	}
	if _, asked := f.wanted[id]; !asked && len(f.wanted) < mostWanted {
		f.wanted[id] = time.Time{}
		select {
		case f.woken <- struct{}{}:
		default:
		}
	}
	return nil, "", false
}

// expect has the registry asked for the schemas of all these records, before it is the turn of each.
func (f *frames) expect(records []*kgo.Record) {
	for _, r := range records {
		if !r.Attrs.IsControl() {
			f.value(r.Value)
		}
	}
}

// now is value for a caller that waits for the registry, beside no ask.
func (f *frames) now(ctx context.Context, record []byte) (value []byte, problem string, err error) {
	for {
		value, problem, ok := f.value(record)
		if ok {
			return value, problem, nil
		}
		id, wait := f.next()
		sleep(ctx, wait)
		f.learn(ctx, id)
		if err := f.away(); err != nil {
			return nil, "", err
		}
	}
}

// ask asks the registry for one schema after the other. learned is called after each answer. A schema for which no answer came is asked
// for again, also when no partition waits for it any more: that tells when the registry answers.
func (f *frames) ask(ctx context.Context, learned func()) {
	for ctx.Err() == nil {
		id, wait := f.next()
		if wait > 0 {
			due := time.NewTimer(wait)
			select {
			case <-due.C:
			case <-f.woken: // another one may go first
			case <-ctx.Done():
			}
			due.Stop()
			continue
		}
		f.learn(ctx, id)
		learned()
		if f.away() != nil {
			sleep(ctx, askEvery)
		}
	}
}

// next is the schema that has to be asked for next, and how long until then; without one, long.
func (f *frames) next() (id uint32, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait = time.Hour
	now := time.Now()
	for wanted, at := range f.wanted {
		if until := at.Sub(now); until < wait {
			id, wait = wanted, until
		}
	}
	return id, max(wait, 0)
}

// learn asks for a schema. One that the registry does not have is wanted once more, a moment later: a copy of it may be behind. Others
// do not wait for that.
func (f *frames) learn(ctx context.Context, id uint32) {
	got, err := f.look(ctx, id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing = err; err != nil {
		return
	}
	if !got.until.IsZero() && f.wanted[id].IsZero() {
		f.wanted[id] = time.Now().Add(askEvery)
		return
	}
	delete(f.wanted, id)
	if len(f.known) >= mostFrames {
		clear(f.known)
	}
	f.known[id] = got
}

func (f *frames) look(ctx context.Context, id uint32) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	schema, err := f.registry.SchemaByID(ctx, int(id))
	var refused *sr.ResponseError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode == sr.ErrSchemaNotFound.Code:
		// A proxy's 404 has no such code, and says nothing about the schema, if it has one for each.
		problem := fmt.Sprintf("the record names schema %d, which the registry does not have", id)
		return answer{problem, time.Now().Add(missingFor)}, nil
	case refused != nil && ofNumber(refused.StatusCode) && f.answers(ctx, id):
		problem := fmt.Sprintf("the record names schema %d, for which the registry answers with HTTP status %d", id, refused.StatusCode)
		return answer{problem, time.Now().Add(missingFor)}, nil
	case refused != nil:
		text := []rune(strings.Join(strings.Fields(refused.Error()), " ")) // it may be a page
		return answer{}, fmt.Errorf("HTTP status %d: %s", refused.StatusCode, string(text[:min(len(text), mostOfError)]))
	case err != nil:
		return answer{}, err
	case schema.Type != sr.TypeJSON:
		return answer{problem: fmt.Sprintf("the record is written as %s (schema %d), must be JSON: use the serializer for JSON Schema", schema.Type, id)}, nil
	}
	return answer{}, nil
}

// ofNumber tells whether a status can be about the number of a schema alone: others are about who asks, or when.
func ofNumber(status int) bool {
	return status >= 400 && status < 500 && !slices.Contains([]int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests,
	}, status)
}

// answers tells whether the registry itself answers for another number: whether it has such a schema, or not.
func (f *frames) answers(ctx context.Context, beside uint32) bool {
	other := 1
	if beside == 1 {
		other = 2
	}
	_, err := f.registry.SchemaByID(ctx, other)
	var refused *sr.ResponseError
	return err == nil || errors.As(err, &refused) && refused.ErrorCode == sr.ErrSchemaNotFound.Code
}

// away is why the registry does not answer; nil: it does, as far as is known.
func (f *frames) away() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing == nil {
		return nil
	}
	return fmt.Errorf("commands.registry does not answer: %w", f.failing)
}
