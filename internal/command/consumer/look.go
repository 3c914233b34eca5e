package consumer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// look tells the database how topics and schemas are set up: the finding command_setup is about commands that could not arrive, or be
// checked.
func (s *session) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	db := store.New(s.db)
	services, err := db.Services(ctx)
	if err != nil {
		return err
	}
	read, err := db.CommandTopics(ctx)
	if err != nil {
		return err
	}
	admin := kadm.NewClient(s.client)
	there, err := admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	var names []string
	shared := false
	for _, name := range there.Names() {
		if s.takes(name) && there[name].Err == nil {
			names = append(names, name)
			shared = shared || serviceOf(name, s.o.Topics) == ""
		}
	}
	topics, err := s.configured(ctx, admin, names)
	if err != nil {
		return err
	}
	wanted := append(read, named(s.o.Topics)...)
	for _, one := range services {
		if own := ownTopic(one.Service, s.o.Topics); own != "" && !shared {
			wanted = append(wanted, own)
		}
	}
	for _, name := range wanted {
		if s.takes(name) && !slices.ContainsFunc(topics, func(t store.CommandTopic) bool { return t.Topic == name }) {
			topics = append(topics, store.CommandTopic{Topic: name, Service: serviceOf(name, s.o.Topics)})
		}
	}
	return db.CommandSetup(ctx, topics, s.policy.Load().schemas.uncompiled())
}

// configured asks the brokers for the settings of topics. Those that it may not see stay unknown.
func (s *session) configured(ctx context.Context, admin *kadm.Client, names []string) (all []store.CommandTopic, err error) {
	settings, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t := store.CommandTopic{Topic: name, Service: serviceOf(name, s.o.Topics), There: true, Unnamed: s.o.Unnamed}
		if one, err := settings.On(name, nil); err == nil {
			has := map[string]string{}
			for _, c := range one.Configs {
				has[c.Key] = c.MaybeValue()
			}
			if ms, err := strconv.ParseInt(has["retention.ms"], 10, 64); err == nil {
				if has["cleanup.policy"] == "compact" {
					ms = -1
				}
				t.KeepsMS = &ms
			}
			t.OwnTimes = has["message.timestamp.type"] == "CreateTime"
		}
		all = append(all, t)
	}
	return all, nil
}

// takes tells whether commands are taken from a topic.
func (c *Consumer) takes(topic string) bool {
	return slices.Contains(c.o.Topics, topic) || serviceOf(topic, c.o.Topics) != ""
}

// ownTopic is the topic of a service; empty: services share all of them.
func ownTopic(service string, topics []string) string {
	for _, t := range topics {
		if prefix, open := strings.CutSuffix(t, "*"); open {
			return prefix + service
		}
	}
	return ""
}

// named are the topics that have to be there. Beside X.* the topic X need not, as in the default: services with topics of their own need
// not share one.
func named(topics []string) (all []string) {
	for _, t := range topics {
		if !strings.HasSuffix(t, "*") && !slices.Contains(topics, t+".*") {
			all = append(all, t)
		}
	}
	return all
}

// uncompiled are the schemas that do not compile.
func (s schemas) uncompiled() (all []store.CommandUncompiled) {
	for name, one := range s {
		if one.Problem != "" {
			all = append(all, store.CommandUncompiled{CommandName: name, Digest: one.Digest, Problem: one.Problem})
		}
	}
	slices.SortFunc(all, func(a, b store.CommandUncompiled) int {
		return strings.Compare(fmt.Sprint(a.CommandName), fmt.Sprint(b.CommandName))
	})
	return all
}
