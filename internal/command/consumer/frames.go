package consumer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/twmb/franz-go/pkg/sr"
)

// frames tells which records have JSON behind the frame that serializers of a schema registry write: a zero byte, and the number of the
// schema. What a number means never changes.
type frames struct {
	registry *sr.Client // nil: no record has a frame

	mu      sync.Mutex
	known   map[uint32]string // what is wrong with records of the schema; empty: nothing
	asked   chan uint32
	failing error // of the registry
}

const (
	frameLength = 5
	mostFrames  = 10000 // numbers are the producers'
)

func newFrames(registry *sr.Client) *frames {
	return &frames{registry: registry, known: map[uint32]string{}, asked: make(chan uint32, 1)}
}

// value is that of a record without its frame. problem: the record is refused. Not ok: the registry is being asked.
func (f *frames) value(record []byte) (value []byte, problem string, ok bool) {
	if f.registry == nil || len(record) < frameLength || record[0] != 0 {
		return record, "", true
	}
	id := binary.BigEndian.Uint32(record[1:])
	f.mu.Lock()
	defer f.mu.Unlock()
	problem, known := f.known[id]
	if !known {
		select {
		case f.asked <- id:
		default: // another one is asked for: then it is this one's turn
		}
		return nil, "", false
	}
	return record[frameLength:], problem, true
}

// now is value for a caller that waits for the registry.
func (f *frames) now(ctx context.Context, record []byte) (value []byte, problem string, err error) {
	value, problem, ok := f.value(record)
	if ok {
		return value, problem, nil
	}
	id := <-f.asked
	if problem, err = f.look(ctx, id); err != nil {
		return nil, "", fmt.Errorf("commands.registry does not answer: %w", err)
	}
	f.mu.Lock()
	f.known[id] = problem
	f.mu.Unlock()
	return record[frameLength:], problem, nil
}

// ask asks the registry for one schema after the other. learned is called after each answer.
func (f *frames) ask(ctx context.Context, learned func()) {
	for {
		select {
		case id := <-f.asked:
			problem, err := f.look(ctx, id)
			f.mu.Lock()
			if f.failing = err; err == nil {
				if len(f.known) >= mostFrames {
					clear(f.known)
				}
				f.known[id] = problem
			}
			f.mu.Unlock()
			if err != nil {
				sleep(ctx, askEvery)
			}
			learned()
		case <-ctx.Done():
			return
		}
	}
}

func (f *frames) look(ctx context.Context, id uint32) (problem string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	schema, err := f.registry.SchemaByID(ctx, int(id))
	var refused *sr.ResponseError
	switch {
	case errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound:
		return fmt.Sprintf("the record names schema %d, which the registry does not have", id), nil
	case err != nil:
		return "", err
	case schema.Type != sr.TypeJSON:
		return fmt.Sprintf("the record is written as %s (schema %d), must be JSON: use the serializer for JSON Schema", schema.Type, id), nil
	}
	return "", nil
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
