package demo

import (
	"context"
	"fmt"
	"strings"
)

// worker is the worker of the pack iu-core.
const worker = "iu_outbound_default"

// The routes that the demo adds to those of the pack. All belong to that worker.
const (
	routeFunction = "demo_function"
	routeKeyed    = "demo_webhook"
	routeLoose    = "demo_unordered"
	routeNATS     = "demo_nats"
	routeKafka    = "demo_kafka"
	routeDead     = "demo_dead"
)

// deadURL is the port for the service discard, where nothing listens.
const deadURL = "http://127.0.0.1:9/"

// A target is where events of a route arrive.
type target struct {
	route   string
	name    string
	ordered bool
	journal *journal
}

// targets returns the targets outside the database, without the dead one.
func (s *show) targets() []target {
	return []target{
		{routeKeyed, "webhook, in order by key", true, s.receiver.keyed.journal},
		{routeLoose, "webhook, in any order", false, s.receiver.loose.journal},
		{routeNATS, "NATS JetStream", true, s.nats.journal},
		{routeKafka, "Kafka", true, s.kafka.journal},
	}
}

// everywhere returns all targets that take events, the function first.
func (s *show) everywhere() []target {
	return append([]target{{routeFunction, "SQL function, exactly once", true, s.function}}, s.targets()...)
}

func (s *show) goLive(ctx context.Context) error {
	s.say("\n2. Everything is off until it is switched on, and each switch is on record:")
	for _, sql := range []string{
		`select tidemark.stage_set('live', 'demo');`,
		fmt.Sprintf(`select tidemark.route_set(code, '{"worker": "%s", "domain": "iu", "type": "version_applied",
        "retry_policy": {"base_seconds": 0.1, "max_seconds": 2, "max_attempts": 50}}'
    || jsonb_build_object('target_kind', kind, 'target_ref', ref, 'ordering', ordering, 'options', options))
from (values
    ('%s',  'sql',     'demo.receive', 'key', '{}'::jsonb),
    ('%s',   'webhook', '%s', 'key', '{"secret": "demo"}'),
    ('%s', 'webhook', '%s', 'none', '{"secret": "demo"}'),
    ('%s',      'nats',    '%s', 'key', '{}'),
    ('%s',     'kafka',   '%s', 'key', '{}'),
    -- Nothing listens here.
    ('%s',      'webhook', '%s', 'key', '{"unsigned": true}')) r (code, kind, ref, ordering, options);`,
			worker, routeFunction, routeKeyed, s.receiver.URL()+keyedPath, routeLoose, s.receiver.URL()+loosePath,
			routeNATS, subject, routeKafka, topic, routeDead, deadURL),
		`update tidemark.outbound_route set enabled = true, dry_run = false where route_code like 'demo%';`,
		`update tidemark.outbound_route set enabled = true where route_code = 'iu_version_applied';  -- in dry run`,
		`select tidemark.gate_set(gate, true) from (values ('routes.enabled'), ('worker.` + worker + `.enabled'),
    ('domain.iu.enabled'), ('notify.bridge_enabled')) g (gate);  -- the last one: emit wakes workers that sleep`,
	} {
		if err := s.do(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// do prints a statement and runs it.
func (s *show) do(ctx context.Context, sql string) error {
	s.say("   %s", strings.ReplaceAll(sql, "\n", "\n   "))
	_, err := s.conn.Exec(ctx, sql)
	return err
}
