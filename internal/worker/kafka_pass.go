package worker

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/failpoint"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// Kafka is a partition of a topic of commands as a source.
type Kafka struct {
	Topic     string
	Partition int
	TopicID   string
	Batch     int // records in a pass at most
	Feed      Feed
	Sharing   *Sharing                                                    // of all partitions of the process
	Passed    func(context.Context, []store.Call, []store.CommandOutcome) // is told what became of records
}

// A Feed has the records of a partition that were fetched and are not passed yet.
type Feed interface {
	// Place tells where the cursor is, and the id of its topic. An error: the records from there on cannot be had without fetching anew.
	Place(topicID string, next int64) error
	// Peek returns the first records, at most so many. Next is the offset after them, and after what is there that is no record.
	Peek(most int) store.Records
	// Settled tells that the cursor has moved.
	Settled(next int64)
	// C is signalled when there may be records.
	C() <-chan struct{}
}

// kafkaPass makes passes over a partition. A pass is one transaction: the effects of its commands, their results and the offset
// commit together. It renews the lease, too. Partitions share passes (Sharing); what fails is found in a partition's own pass.
type kafkaPass struct {
	*store.Partition
	*reporter
	o        Kafka
	placed   int64 // epoch for which the place of the cursor was read
	next     int64
	renewed  time.Time
	ended    int  // passes in a row that have lost their session
	apart    bool // its own pass has failed: until one succeeds, others do not fail with it
	patience map[store.CommandName]time.Duration
	learned  time.Time // when patience was begun
}

func (s Kafka) open(db store.Pool, o *Options, r *reporter) source {
	r.log = o.Log.With("worker", o.Worker, "topic", s.Topic, "partition", s.Partition)
	return &kafkaPass{Partition: store.NewPartition(db, s.Topic, s.Partition, o.Owner, o.Lease), reporter: r, o: s}
}

const (
	mostEnded   = 2 // passes in a row whose session ends: then a command is looked for that ends it
	renewals    = 4 // an idle partition renews its lease so often while it lasts
	learnEvery  = 5 * time.Second
	networkTime = 5 * time.Second // longer than the server's own timeout: for connections that the network has forgotten
)

func (k *kafkaPass) pass(ctx context.Context, l *lease) (next, error) {
	if k.placed != l.epoch {
		if err := k.place(l); err != nil {
			return next{}, k.judge(ctx, err)
		}
		k.placed = l.epoch
	}
	page := k.o.Feed.Peek(k.o.Batch)
	page.TopicID, page.From, page.Next = k.o.TopicID, k.next, max(page.Next, k.next)
	idle := next{idle: true, pollSelf: true}
	if len(page.Calls) == 0 && time.Since(k.renewed) < l.lasts/renewals { // the cursor moves over what is no record then, too
		return idle, nil
	}
	got, ok, err := k.together(ctx, l, page)
	switch {
	case err != nil:
		return next{}, k.judge(ctx, err)
	case !ok:
		return next{again: true}, nil
	}
	k.well(ctx)
	switch got.Status {
	case "closed":
		return next{}, gateError{got.Detail}
	case "waiting":
		k.waits(ctx, store.Claim{Status: got.Status, Detail: got.Detail})
		return idle, nil
	}
	return next{again: len(page.Calls) > 0, found: len(page.Calls) > 0, idle: len(page.Calls) == 0, pollSelf: true}, nil
}

// place reads where the cursor is. What the owner before has committed is passed.
func (k *kafkaPass) place(l *lease) error {
	ctx, cancel := context.WithTimeout(l.hard, settleTime)
	defer cancel()
	at, topic, err := k.Place(ctx)
	if err != nil {
		return err
	}
	k.next, k.renewed = at, time.Time{} // the first pass is made at once, even without records: else the partition counts as never run
	return k.o.Feed.Place(topic, at)
}

// judge says what an error of a pass means for the lease.
func (k *kafkaPass) judge(ctx context.Context, err error) error {
	switch {
	case store.Is(err, tidemark.ErrFenced):
		return errFenced
	case store.Is(err, tidemark.ErrRegression):
		k.placed = 0 // a pass whose answer was lost has moved the cursor: read it again
		return retryError{"pass", false, err}
	case store.TimedOut(err) || store.Transient(err):
		return retryError{"pass", false, err}
	}
	k.failed(ctx, "pass", err)
	return err
}

// run passes records: all of them, or where one fails those before it, then that one alone. What is left is for the next pass.
func (k *kafkaPass) run(ctx context.Context, l *lease, r store.Records, way string) (store.CommandPass, error) {
	began := time.Now()
	got, err := k.once(l, r, way)
	if store.SessionEnded(err) {
		k.ended++
	}
	if err == nil {
		k.passed(ctx, r, got, began)
		return got, nil
	}
	k.apart = true
	failed, many := failedAt(err), len(r.Calls)
	switch {
	case ctx.Err() != nil || many == 0:
		return got, err
	case failed > 0 && failed <= many && way == store.Batch:
		if failed > 1 {
			if got, err = k.run(ctx, l, portion(r, 0, failed-1), store.Batch); err != nil || k.next != r.Calls[failed-1].Offset || ctx.Err() != nil {
				return got, err
			}
		}
		return k.run(ctx, l, portion(r, failed-1, failed), store.Alone)
	case many > 1 && (k.endless(err) || !refused(err)):
		return k.run(ctx, l, portion(r, 0, many/2), store.Batch)
	case many == 1 && k.endless(err) && way != store.Overdue:
		return k.run(ctx, l, r, store.Overdue)
	case many == 1 && r.Calls[0].Bare != nil && !refused(err): // what its producer wrote must not hold the partition for ever
		k.log.WarnContext(ctx, "a refused record cannot be recorded with its ids", "offset", r.Calls[0].Offset, "error", err)
		bare := r.Calls[0]
		bare.JSON, bare.Bare = bare.Bare(), nil
		r.Calls = []store.Call{bare}
		return k.run(ctx, l, r, store.Batch)
	}
	return got, err
}

// passed takes in what a pass did. That it waited for others before it began is not of the time that it took.
func (k *kafkaPass) passed(ctx context.Context, r store.Records, got store.CommandPass, began time.Time) {
	k.ended, k.apart = 0, false
	k.observe.read(got.Rows, time.Since(began))
	k.observe.settled(got.Rows, time.Since(began))
	if got.Status == "closed" {
		return
	}
	k.next, k.renewed = got.Next, time.Now()
	k.o.Feed.Settled(got.Next)
	done := got.Outcomes(r.Calls)
	k.o.Sharing.learn(r.Calls, done)
	k.o.Passed(ctx, r.Calls[:len(done)], done)
}

// endless: a command of the pass may be why it did not come to an end. A function can end the session, and a session can end for
// other reasons, but those are not there again and again.
func (k *kafkaPass) endless(err error) bool {
	return store.TimedOut(err) || store.SessionEnded(err) && k.ended >= mostEnded
}

// refused: the pass as a whole cannot be made now, with fewer records neither.
func refused(err error) bool {
	return store.Transient(err) || store.Is(err, tidemark.ErrFenced) || store.Is(err, tidemark.ErrRegression)
}

// portion is the records from the n-th to before the m-th. They begin where the cursor is: a part before them was passed.
func portion(r store.Records, n, m int) store.Records {
	if n > 0 {
		r.From = r.Calls[n].Offset
	}
	if m < len(r.Calls) {
		r.Behind += int64(len(r.Calls) - m)
		r.Since = &r.Calls[m].At
		r.Next = r.Calls[m].Offset
	}
	r.Calls = r.Calls[n:m]
	return r
}

// failedAt is the position of the command that failed, as tidemark.command_passes tells it; 0: the error is not of a command.
func failedAt(err error) int {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || !slices.Contains([]string{"retryable", "operator", "outage", "terminal"}, refused.DataTypeName) {
		return 0
	}
	n, err := strconv.Atoi(refused.ColumnName)
	if err != nil {
		return 0
	}
	return n
}

// once makes one pass, to its end also when the worker is told to stop meanwhile.
func (k *kafkaPass) once(l *lease, r store.Records, way string) (store.CommandPass, error) {
	failpoint.Pause("read")
	timeout, err := k.timeout(l, r.Calls)
	if err != nil {
		return store.CommandPass{}, err
	}
	ctx, cancel := context.WithTimeout(l.hard, timeout+networkTime)
	defer cancel()
	if failpoint.Bug("offsetfirst") && len(r.Calls) > 0 {
		if got, err := k.Pass(ctx, timeout, store.Records{TopicID: r.TopicID, From: r.From, Next: r.Next}, store.Batch); err != nil {
			return got, err
		}
		failpoint.Pause("offset")
		r.From = r.Next
	}
	return k.Pass(ctx, timeout, r, way)
}

// timeout is that of the command that may take longest. An operator's change counts within seconds.
func (k *kafkaPass) timeout(l *lease, calls []store.Call) (longest time.Duration, err error) {
	if time.Since(k.learned) > learnEvery {
		k.patience, k.learned = map[store.CommandName]time.Duration{}, time.Now()
	}
	for _, c := range append([]store.Call{{}}, calls...) {
		known, ok := k.patience[c.Name]
		if !ok {
			ctx, cancel := context.WithTimeout(l.hard, settleTime)
			known, err = k.Patience(ctx, []store.CommandName{c.Name})
			cancel()
			if err != nil {
				return 0, err
			}
			k.patience[c.Name] = known
		}
		longest = max(longest, known)
	}
	return longest, nil
}
