package consumer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// frames tells which records have JSON behind the frame that serializers of a schema registry write: a zero byte, and the number of the
// schema. What a number means never changes; one that the registry does not have may get a meaning.
type frames struct {
	registry *sr.Client // nil: no record has a frame

	mu      sync.Mutex
	known   map[uint32]answer
	asked   chan uint32
	failing error // of the registry
}

// An answer is what the registry says of a schema.
type answer struct {
	problem string    // with records of the schema; empty: none
	until   time.Time // it is asked again then; zero: never
}

const (
	frameLength = 5
	mostFrames  = 10000 // numbers are the producers'
	missingFor  = 10 * time.Second
	mostOfError = 200
)

func newFrames(registry *sr.Client) *frames {
	return &frames{registry: registry, known: map[uint32]answer{}, asked: make(chan uint32, 1)}
}

// value is that of a record without its frame. problem: the record is refused. Not ok: the registry is being asked.
func (f *frames) value(record []byte) (value []byte, problem string, ok bool) {
	if f.registry == nil || len(record) < frameLength || record[0] != 0 {
		return record, "", true
	}
	id := binary.BigEndian.Uint32(record[1:])
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[id]
	if !ok || !known.until.IsZero() && time.Now().After(known.until) {
		select {
		case f.asked <- id:
		default: // another one is asked for: then it is this one's turn
		}
		return nil, "", false
	}
	return record[frameLength:], known.problem, true
}

// now is value for a caller that waits for the registry.
func (f *frames) now(ctx context.Context, record []byte) (value []byte, problem string, err error) {
	for {
		value, problem, ok := f.value(record)
		if ok {
			return value, problem, nil
		}
		f.learn(ctx, <-f.asked)
		if err := f.away(); err != nil {
			return nil, "", err
		}
	}
}

// ask asks the registry for one schema after the other. learned is called after each answer. A schema for which no answer came is asked
// for again, also when no partition waits for it any more: that tells when the registry answers. Another one that waits goes first.
func (f *frames) ask(ctx context.Context, learned func()) {
	for {
		select {
		case id := <-f.asked:
			f.learn(ctx, id)
			learned()
			if f.away() != nil {
				sleep(ctx, askEvery)
				select {
				case f.asked <- id:
				default:
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// learn asks for a schema, and once more if the registry does not have it: a copy of it may be a moment behind.
func (f *frames) learn(ctx context.Context, id uint32) {
	got, err := f.look(ctx, id)
	if err == nil && !got.until.IsZero() {
		sleep(ctx, askEvery)
		got, err = f.look(ctx, id)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing = err; err != nil {
		return
	}
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
		// A proxy's 404 has no such code, and says nothing about the schema.
		problem := fmt.Sprintf("the record names schema %d, which the registry does not have", id)
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

// away is why the registry does not answer; nil: it does, as far as is known.
func (f *frames) away() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing == nil {
		return nil
	}
	return fmt.Errorf("commands.registry does not answer: %w", f.failing)
}
