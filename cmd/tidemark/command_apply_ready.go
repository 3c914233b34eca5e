package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// topicsTime is how long to ask the brokers for topics.
const topicsTime = 5 * time.Second

// sayWhatIsMissing names what still holds the live commands of a service, their results or their dead letters: closed gates, routes that
// are off, topics that are not there. These are remarks: nothing is lost meanwhile.
func sayWhatIsMissing(ctx context.Context, s *cli.Session, c config.Config, service string) error {
	gates, err := s.Gates(ctx)
	if err != nil {
		return err
	}
	routes, err := s.Routes(ctx, store.RouteFilter{})
	if err != nil {
		return err
	}
	own := []string{"results." + service, "dlq." + service}
	matter := []string{"commands.enabled", "commands." + service + ".enabled", "routes.enabled"}
	for _, r := range routes {
		if !slices.Contains(own, r.RouteCode) {
			continue
		}
		if gate := store.WorkerGate(r.Worker); !slices.Contains(matter, gate) {
			matter = append(matter, gate)
		}
		if !r.Enabled || r.DryRun {
			s.Note("the route %s is not live: tidemark route set %[1]s --enabled --dry-run=false", r.RouteCode)
		}
	}
	for _, name := range matter {
		if slices.ContainsFunc(gates, func(g store.Gate) bool { return g.Gate == name && !g.Open }) {
			s.Note("a gate is closed: tidemark gate open %s", name)
		}
	}
	if c.Commands.Connection == "" {
		return nil
	}
	missing, err := missingTopics(ctx, c, service)
	if err != nil {
		s.Note("cannot tell whether the topics exist: %v", err)
	}
	for _, topic := range missing {
		s.Note("the topic %s is not there: make it, since Tidemark makes none", topic)
	}
	return nil
}

// missingTopics are those of the service that its brokers do not have.
func missingTopics(ctx context.Context, c config.Config, service string) (missing []string, err error) {
	client, err := daemon.KafkaClient(c, c.Commands.Connection)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, topicsTime)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	names := []string{config.ServiceTopic(c.Commands.Results, service), config.ServiceTopic(c.Commands.DeadLetters, service)}
	if own := c.Commands.OwnTopic(service); own != "" {
		names = append([]string{own}, names...)
	}
	topics, err := kadm.NewClient(client).ListTopics(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if errors.Is(topics[name].Err, kerr.UnknownTopicOrPartition) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}
