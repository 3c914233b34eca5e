package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// When things happen, as parts of the time of the load.
const (
	calmUntil  = 0.40 // from warmUp on: what latencies are measured in
	failFrom   = 0.43
	takeoverAt = 0.54
	closeAt    = 0.68
)

const (
	warmUp   = 500 * time.Millisecond
	gateTime = 2 * time.Second
	// obeyed is within which time nothing arrives any more after a gate was closed.
	obeyed = time.Second
)

// disturb lets things go wrong, under load.
func (s *show) disturb(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	if err := trial.Wait(ctx, warmUp); err != nil {
		return err
	}
	s.calm.Store(true)
	if err := s.until(ctx, calmUntil); err != nil {
		return err
	}
	s.calm.Store(false)
	if err := s.until(ctx, failFrom); err != nil {
		return err
	}
	s.receiver.faulty.Store(true)
	s.note("the webhooks' receiver begins to fail: some requests get 503, some no answer though it took the event")
	if _, err := conn.Exec(ctx, `
insert into demo.journal (event_id, unit_id, version)
values (tidemark.emit_strict('iu', 'version_applied', '{"unit_id": "unit-poison", "version_id": "not a number"}'), 'unit-poison', 0)`); err != nil {
		return err
	}
	s.note("an event is emitted that the SQL function cannot take")

	if err := s.until(ctx, takeoverAt); err != nil {
		return err
	}
	from, to, took, err := s.takeover(ctx, conn)
	if err != nil {
		return err
	}
	s.note("daemon %s, which was at work, is stopped; daemon %s took over after %.2f s", from, to, took.Seconds())

	if err := s.until(ctx, closeAt); err != nil {
		return err
	}
	return s.closeGate(ctx, conn)
}

// closeGate closes the gate for a while and looks when the last event came through.
func (s *show) closeGate(ctx context.Context, conn *pgx.Conn) error {
	gate := `select tidemark.gate_set('worker.` + worker + `.enabled', $1, 'demo')`
	if _, err := conn.Exec(ctx, gate, false); err != nil {
		return err
	}
	closed := time.Now()
	s.note("the gate is closed, with events on their way")
	if err := trial.Wait(ctx, gateTime); err != nil {
		return err
	}
	opened := time.Now()
	if _, err := conn.Exec(ctx, gate, true); err != nil {
		return err
	}
	function, err := s.functionJournal(ctx, conn)
	if err != nil {
		return err
	}
	last := function.lastBetween(closed, opened)
	for _, t := range s.targets() {
		if at := t.journal.lastBetween(closed, opened); at.After(last) {
			last = at
		}
	}
	text := "nothing arrived meanwhile"
	if !last.IsZero() {
		s.afterClosing = last.Sub(closed)
		text = fmt.Sprintf("the last arrival was %d ms after it closed", s.afterClosing.Milliseconds())
	}
	s.note("the gate is opened; %s", text)
	return nil
}

// until waits for a part of the load's time to be over.
func (s *show) until(ctx context.Context, part float64) error {
	return trial.Wait(ctx, time.Until(s.began.Add(time.Duration(part*float64(s.options.Load)))))
}
