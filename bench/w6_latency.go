package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	answered   = "tidemark, command to result"
	answerRate = 500
)

// commandStream takes commands from a topic to their results in another.
type commandStream struct {
	*env
	broker   *commandBroker
	topic    string
	producer *kgo.Client
	results  *kgo.Client
	daemon   *routing
}

func (s *commandStream) Prepare(ctx context.Context) error {
	if err := s.broker.start(ctx); err != nil {
		return err
	}
	s.backlog.events = 0
	if err := errors.Join((&commandRun{env: s.env}).empty(ctx), s.resetWorker(ctx)); err != nil {
		return err
	}
	return s.setWakeUp(ctx, true)
}

func (s *commandStream) Start(ctx context.Context, handle func([]byte)) (err error) {
	if s.topic, s.producer, err = s.broker.topic(ctx, 8); err != nil {
		return err
	}
	answers := "results-of-" + s.topic
	if _, err := kadm.NewClient(s.producer).CreateTopic(ctx, 8, 1, nil, answers); err != nil {
		return err
	}
	if err := s.exec(ctx, fmt.Sprintf(`select tidemark.route_set('answers', '{"worker": "bench", "domain": "commands", "type": "result.bench", "target_kind": "kafka",
		"target_ref": "%s", "options": {"format": "payload"}, "ordering": "key", "enabled": true, "dry_run": false}')`, answers)); err != nil {
		return err
	}
	if s.daemon, err = s.broker.daemon(ctx, s.topic, 50, 8); err != nil {
		return err
	}
	s.results, err = kgo.NewClient(kgo.SeedBrokers(s.broker.address()), kgo.ConsumeTopics(answers), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	go func(client *kgo.Client) {
		for {
			fetches := client.PollFetches(ctx)
			if fetches.IsClientClosed() || ctx.Err() != nil {
				return
			}
			fetches.EachRecord(func(r *kgo.Record) { handle(r.Value) })
		}
	}(s.results)
	return nil
}

// Emit returns when the broker has the command.
func (s *commandStream) Emit(ctx context.Context, _ querier, n int, key, payload string) error {
	r, err := command(n, key, fmt.Sprint(s.topic, "-", n), json.RawMessage(payload))
	if err != nil {
		return err
	}
	return s.producer.ProduceSync(ctx, r).FirstErr()
}

func (s *commandStream) Stop(ctx context.Context) error {
	err := s.daemon.stop()
	s.daemon = nil
	for _, client := range []*kgo.Client{s.producer, s.results} {
		if client != nil {
			client.Close()
		}
	}
	s.producer, s.results = nil, nil
	return errors.Join(err, s.exec(ctx, `delete from tidemark.outbound_route where route_code = 'answers'`), (&commandRun{env: s.env}).empty(ctx), s.setWakeUp(ctx, false))
}

func (s *commandStream) Verify(ctx context.Context) error { return s.verifiedSoon(ctx, "bench") }
