package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// producer is a client that one Deliver has for itself.
type producer struct {
	client *kgo.Client
	line   *line
	born   time.Time
}

func newProducer(options []kgo.Opt, dial dialer) (*producer, error) {
	p := &producer{line: newLine(dial), born: time.Now()}
	client, err := kgo.NewClient(append(slices.Clip(options), kgo.Dialer(p.line.dial), kgo.WithHooks(p))...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	p.client = client
	return p, nil
}

func (p *producer) close() {
	_, _ = p.line.cut()
	p.client.Close()
}

// record is a delivery as the client has it. It is its Kafka record's context, by which
// the client's callbacks find it.
type record struct {
	kafka    kgo.Record
	position int // in the batch
	round    *round
	placed   bool // it waits in its partition
	answered bool
	err      error // of the answer
}

// A context that is never done. The client asks it even after the last answer, when the
// record may serve another delivery: so these look at no field.

func (*record) Deadline() (time.Time, bool) { return time.Time{}, false }

func (*record) Done() <-chan struct{} { return nil }

func (*record) Err() error { return nil }

func (*record) Value(any) any { return nil }

// round is one sending of records.
type round struct {
	settling atomic.Int64  // records that are neither placed nor answered
	settled  chan struct{} // closed when there is none

	mu       sync.Mutex
	sending  bool
	over     bool
	tooEarly error // a record failed before anything was sent
}

// OnProduceRecordPartitioned is called by the client when a record waits in its partition.
func (p *producer) OnProduceRecordPartitioned(kafka *kgo.Record, _ int32) {
	r := kafka.Context.(*record)
	r.placed = true
	r.round.settle()
}

func (r *round) settle() {
	if r.settling.Add(-1) == 0 {
		close(r.settled)
	}
}

func (r *round) answer(kafka *kgo.Record, err error) {
	a := kafka.Context.(*record)
	r.mu.Lock()
	if !r.over {
		a.answered, a.err = true, err
		if err != nil && !r.sending {
			if errors.Is(err, kerr.MessageTooLarge) {
				a.err = errTooLarge
			} else {
				r.tooEarly = err
			}
		}
	}
	r.mu.Unlock()
	if !a.placed {
		r.settle()
	}
}

var errTooLarge = errors.New("larger than max record bytes")

// send sends the records and waits for all answers. An error says that it gave up: records
// without an answer left if left is true, and did not otherwise, and the producer must be
// closed.
//
// A partition's records fail together, those that were sent with all that wait behind
// them, and the broker takes no later ones by their sequence numbers. One that joins them
// when they have failed would be sent, though, and overtake them. So the line holds what
// the client sends until all are placed and none has failed.
func (p *producer) send(ctx context.Context, records []*record) (left bool, err error) {
	r := &round{settled: make(chan struct{})}
	r.settling.Store(int64(len(records)))
	p.line.hold()
	for _, a := range records {
		a.round, a.placed, a.answered, a.err = r, false, false, nil
		a.kafka.Context = a
		p.client.TryProduce(a, &a.kafka, r.answer)
	}
	if err := r.place(ctx, p.client); err != nil {
		return p.giveUp(r, err)
	}
	p.line.release()
	// Returns when every record has its answer.
	if err := p.client.Flush(ctx); err != nil {
		return p.giveUp(r, err)
	}
	return false, nil
}

// place waits until all records are placed. What failed before the last of them was is
// known then: answers come one after the other, and the one to a record without topic
// comes after them.
func (r *round) place(ctx context.Context, client *kgo.Client) error {
	answered := make(chan struct{})
	select {
	case <-r.settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	client.TryProduce(ctx, &kgo.Record{}, func(*kgo.Record, error) { close(answered) })
	<-answered
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending = true
	return r.tooEarly
}

// giveUp takes no answers any more, and lets nothing more leave.
func (p *producer) giveUp(r *round, why error) (left bool, err error) {
	left, dialErr := p.line.cut()
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	if !left && dialErr != nil {
		why = dialErr
	}
	return left, why
}
