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

// producer is a client that serves one Deliver at a time.
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

// record is a delivery in the client. It is also the context of its Kafka record, through which
// the client's callbacks find it.
type record struct {
	kafka    kgo.Record
	position int // in the batch
	round    *round
	placed   bool // the client has queued it for its partition
	answered bool
	err      error // the answer's error
}

// record implements a context that is never done. The client calls these methods even after the
// last answer, when the record may serve another delivery: so they read no field.

func (*record) Deadline() (time.Time, bool) { return time.Time{}, false }

func (*record) Done() <-chan struct{} { return nil }

func (*record) Err() error { return nil }

func (*record) Value(any) any { return nil }

// round is one call of send.
type round struct {
	settling atomic.Int64  // records that are neither placed nor answered
	settled  chan struct{} // closed when settling is 0

	mu       sync.Mutex
	sending  bool
	over     bool
	tooEarly error // a record failed before anything was sent
}

// OnProduceRecordPartitioned is called by the client when it has queued a record for its partition.
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

// send sends the records and waits for all answers. On an error it has given up: then left says
// whether the records without an answer may have been sent, and the caller must close the producer.
//
// When a record fails, all records of its partition that are queued behind it fail with it, and the
// broker's check of sequence numbers refuses later ones. But a record that is queued after the
// failure would be sent, and overtake them. So the line holds all requests until all records are
// placed and none has failed.
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

// place waits until all records are placed or have failed. It then sends a record without topic, which
// fails at once: answers come one after the other, so its answer comes after all earlier failures.
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

// giveUp ignores further answers and lets no further request pass.
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
