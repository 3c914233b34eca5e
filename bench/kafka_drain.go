package main

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// kafkaDrain measures how fast a backlog gets to a topic. The mover runs already, and stands still while the backlog is written,
// so that the start of a program is no part of it.
type kafkaDrain struct {
	*env
	*mover
	items int

	cost map[string]float64
}

func (c *kafkaDrain) Name() string {
	if c.format == "" {
		return c.kind + drainSuffix
	}
	return c.kind + ", " + c.format + " alone" + drainSuffix
}

func (c *kafkaDrain) Figures() map[string]float64 { return c.cost }

func (c *kafkaDrain) Setup(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	if err := c.fill(ctx, 0, 0); err != nil {
		return err
	}
	if err := c.kafka.holds(ctx, c.topic, 1, time.Minute); err != nil {
		return c.process.because(err)
	}
	if err := syscall.Kill(c.process.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	const batch = 10_000
	for first := 1; first <= c.items; first += batch {
		if err := c.fill(ctx, first, min(first+batch-1, c.items)); err != nil {
			return err
		}
	}
	return c.vacuum(ctx, c.table())
}

// Run ends when the last event is in the topic, and the mover knows it.
func (c *kafkaDrain) Run(ctx context.Context) (int, error) {
	clocks := func() map[string]time.Duration {
		return map[string]time.Duration{
			moverFigure: processCPU(c.process.pid), serverFigure: c.meter.cpu.cluster(), brokerFigure: processCPU(c.kafka.node.Pid()),
		}
	}
	before := clocks()
	if err := syscall.Kill(c.process.pid, syscall.SIGCONT); err != nil {
		return 0, err
	}
	if err := errors.Join(c.kafka.holds(ctx, c.topic, c.items+1, 10*time.Minute), c.settled(ctx, c.items+1)); err != nil {
		return 0, c.process.because(err)
	}
	c.cost = map[string]float64{memoryFigure: peakMemory(c.process.pid)}
	for what, after := range clocks() {
		c.cost[what] = (after - before[what]).Seconds() * 1e6 / float64(c.items)
	}
	return c.items, nil
}

func (c *kafkaDrain) Check(ctx context.Context) error {
	return errors.Join(consumed(ctx, []string{c.kafka.node.Address()}, c.topic, c.items), c.verify(ctx))
}

func (c *kafkaDrain) Clean(ctx context.Context) error { return c.end(ctx) }

// kafkaStream is a mover between an emitter and a consumer of the topic.
type kafkaStream struct {
	*mover
	closeConsumer func()
}

func (s *kafkaStream) Prepare(context.Context) error { return nil }

func (s *kafkaStream) Start(ctx context.Context, handle func([]byte)) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.fill(ctx, 0, 0); err != nil {
		return err
	}
	if err := s.kafka.holds(ctx, s.topic, 1, time.Minute); err != nil {
		return s.process.because(err)
	}
	var err error
	s.closeConsumer, err = s.consume(ctx, handle)
	return err
}

func (s *kafkaStream) Emit(ctx context.Context, db querier, _ int, key, payload string) error {
	_, err := db.Exec(ctx, s.emitSQL(), payload, key)
	return err
}

func (s *kafkaStream) Stop(ctx context.Context) error {
	if s.closeConsumer != nil {
		s.closeConsumer()
		s.closeConsumer = nil
	}
	return s.end(ctx)
}

func (s *kafkaStream) Verify(ctx context.Context) error { return s.verify(ctx) }
