package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/command/consumer"
	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/daemon"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// aclTime is how long the brokers may take.
const aclTime = 30 * time.Second

type aclFlags struct {
	file, connection, daemon string
	principals               []string
}

const aboutACL = `The topic of a service is its identity: who may write to it may ask. From the allowlist of the service and the section commands of
the daemon's configuration follows what Kafka has to allow: its producers write to the topic of the service and read its results,
the daemon reads the commands in its group, sees for how long the topic keeps them, and writes results and dead letters. The principal of a producer is User:PRODUCER,
unless --principal says otherwise. Groups in which producers read results are theirs.`

func commandACL() cli.Command {
	var f aclFlags
	flags := func(flags *pflag.FlagSet) {
		cli.ConfigFlag(flags, &f.file)
		flags.StringVar(&f.daemon, "daemon", "", "`PRINCIPAL` of the daemon, such as User:tidemark; default: the user of commands.connection")
		flags.StringArrayVar(&f.principals, "principal", nil, "`PRODUCER=PRINCIPAL`, such as web-shop=User:CN=shop; may be repeated")
	}
	brokers := func(set *pflag.FlagSet) {
		flags(set)
		set.StringVar(&f.connection, "connection", "", "connection of the configuration that may see and change ACLs; default: commands.connection")
	}
	return cli.Command{
		Use: "acl", Short: "What Kafka has to allow for a service: print, check and apply",
		Long:    aboutACL,
		Example: "  tidemark command acl check billing --config tidemark.yaml",
		Sub: []cli.Command{
			{
				Use: "print SERVICE", Short: "Print what Kafka has to allow", Role: "tidemark_reader", Needs: cli.Nothing, Flags: flags, Long: aboutACL,
				Run: func(ctx context.Context, s *cli.Session) error {
					c, wanted, err := wantedACLs(ctx, s, f)
					if err != nil {
						return err
					}
					return printACLs(s, "no producer is allowed, and "+c.Commands.Connection+" needs nothing", wanted)
				},
			},
			{
				Use: "check SERVICE", Short: "Compare it with the brokers: what is missing, and who else may write", Role: "tidemark_reader",
				Needs: cli.Nothing, Flags: brokers,
				Long: "List what is missing at the brokers, and who else may write to the topics; the exit status is 1 if there is something.\n\n" + aboutACL,
				Run:  func(ctx context.Context, s *cli.Session) error { return compareACLs(ctx, s, f, false) },
			},
			{
				Use: "apply SERVICE", Short: "Create at the brokers what is missing; nothing is taken away", Role: "tidemark_reader",
				Needs: cli.Nothing, Flags: brokers,
				Long: "Create at the brokers what is missing. Nothing is taken away: who else may write to the topics is listed, and the exit status is 1.\n\n" + aboutACL,
				Run:  func(ctx context.Context, s *cli.Session) error { return compareACLs(ctx, s, f, true) },
			},
		},
	}
}

// acl is something that Kafka allows, or should.
type acl struct {
	State     string `json:"state"` // wanted, missing, made, or stranger: it may, and should not
	Principal string `json:"principal"`
	Operation string `json:"operation"`
	Kind      string `json:"resource_type"` // topic or group
	Name      string `json:"resource"`
	operation kadm.ACLOperation
}

// wantedACLs follow from the allowlist and the configuration.
func wantedACLs(ctx context.Context, s *cli.Session, f aclFlags) (c config.Config, all []acl, err error) {
	if c, err = s.LoadConfig(f.file); err != nil {
		return c, nil, err
	}
	if err := cli.NeedBrokers(c); err != nil {
		return c, nil, err
	}
	service := s.Arg(0)
	events := c.Commands.OwnTopic(service)
	if events == "" {
		return c, nil, cli.Usagef("commands.topics has no topic of a service's own, such as db-events.*: on a shared topic an ACL proves nothing, and producers sign")
	}
	if f.daemon == "" {
		user := c.Connections[c.Commands.Connection].SASL.User
		if user == "" {
			return c, nil, cli.Usagef("--daemon is required: the connection %s has no user", c.Commands.Connection)
		}
		f.daemon = "User:" + user
	}
	if err := s.OpenAt(ctx, c); err != nil {
		return c, nil, err
	}
	services, err := s.Services(ctx)
	if err != nil {
		return c, nil, err
	}
	if !slices.ContainsFunc(services, func(one store.Service) bool { return one.Service == service }) {
		return c, nil, cli.Hint(fmt.Errorf("there is no service %q", service), "tidemark command apply registers one.")
	}
	allowed, err := s.Producers(ctx, service)
	if err != nil {
		return c, nil, err
	}
	results, letters := config.ServiceTopic(c.Commands.Results, service), config.ServiceTopic(c.Commands.DeadLetters, service)
	want := func(principal string, operation kadm.ACLOperation, kind, name string) {
		one := acl{"wanted", principal, strings.ToLower(operation.String()), kind, name, operation}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	principals, err := principalsOf(f.principals)
	if err != nil {
		return c, nil, err
	}
	for _, p := range allowed {
		who := cmp.Or(principals[p.Producer], "User:"+p.Producer)
		want(who, kadm.OpWrite, "topic", events)
		want(who, kadm.OpRead, "topic", results)
	}
	want(f.daemon, kadm.OpRead, "topic", events)
	want(f.daemon, kadm.OpDescribeConfigs, "topic", events)
	want(f.daemon, kadm.OpRead, "group", c.Commands.GroupName(s.Conn.Config().Database))
	want(f.daemon, kadm.OpWrite, "topic", results)
	want(f.daemon, kadm.OpWrite, "topic", letters)
	return c, all, nil
}

func principalsOf(given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range given {
		producer, principal, ok := strings.Cut(text, "=")
		if !ok || producer == "" || !strings.Contains(principal, ":") {
			return nil, cli.Usagef("--principal %q must be PRODUCER=PRINCIPAL, such as web-shop=User:shop", text)
		}
		all[producer] = principal
	}
	return all, nil
}

func printACLs(s *cli.Session, none string, all []acl) error {
	return cli.Table(s.Printer, none, all, "STATE|PRINCIPAL|OPERATION|RESOURCE", func(a acl) cli.Row {
		return cli.Row{a.State, a.Principal, a.Operation, a.Kind + " " + a.Name}
	})
}

// compareACLs lists what is missing, and who may write without being wanted. With mend it makes what is missing.
func compareACLs(ctx context.Context, s *cli.Session, f aclFlags, mend bool) error {
	c, wanted, err := wantedACLs(ctx, s, f)
	if err != nil {
		return err
	}
	name := cmp.Or(f.connection, c.Commands.Connection)
	client, err := daemon.KafkaClient(c, name)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, aclTime)
	defer cancel()
	admin := kadm.NewClient(client)
	var differ []acl
	seen := map[string]bool{}
	for _, w := range wanted {
		there, err := allowedAt(ctx, admin, w)
		if err != nil {
			return aclFailure(err, name)
		}
		if !slices.ContainsFunc(there, func(d kadm.DescribedACL) bool { return suffices(d, w) }) {
			missing := w
			if missing.State = "missing"; mend {
				if err := makeACL(ctx, admin, w); err != nil {
					return aclFailure(err, name)
				}
				missing.State = "made"
			}
			differ = append(differ, missing)
		}
		if w.Kind == "topic" && !seen[w.Name] {
			seen[w.Name] = true
			differ = append(differ, strangers(there, w.Name, wanted)...)
		}
	}
	if err := printACLs(s, "nothing is missing at the brokers of "+name+", and only those who are wanted may write", differ); err != nil {
		return err
	}
	bad := slices.DeleteFunc(slices.Clone(differ), func(a acl) bool { return a.State == "made" })
	if len(bad) == 0 {
		return nil
	}
	err = fmt.Errorf("%s", cli.Count(len(bad), "ACL differs", "ACLs differ"))
	if slices.ContainsFunc(bad, func(a acl) bool { return a.State == "stranger" }) {
		return cli.ExitWith(cli.StatusFailed, cli.Hint(err, "A stranger who may write to the topic of a service may ask as any of its producers: take the ACL away, or allow the producer."))
	}
	return cli.ExitWith(cli.StatusFailed, cli.Hint(err, "tidemark command acl apply "+s.Arg(0)+" makes what is missing."))
}

// allowedAt is what the brokers allow for the resource, also by prefixes and by *.
func allowedAt(ctx context.Context, admin *kadm.Client, w acl) (all kadm.DescribedACLs, err error) {
	filter := onResource(w).ResourcePatternType(kadm.ACLPatternMatch).Operations(kadm.OpAny).Allow().AllowHosts()
	results, err := admin.DescribeACLs(ctx, filter)
	for _, r := range results {
		err = cmp.Or(err, r.Err)
		all = append(all, r.Described...)
	}
	return all, err
}

func onResource(w acl) *kadm.ACLBuilder {
	if w.Kind == "group" {
		return kadm.NewACLs().Groups(w.Name)
	}
	return kadm.NewACLs().Topics(w.Name)
}

// suffices: what the brokers allow is enough, from every host.
func suffices(d kadm.DescribedACL, w acl) bool {
	return (d.Principal == w.Principal || d.Principal == "User:*") && d.Host == "*" && (d.Operation == w.operation || d.Operation == kadm.OpAll)
}

// strangers may write to the topic, and are not wanted.
func strangers(there kadm.DescribedACLs, topic string, wanted []acl) (all []acl) {
	for _, d := range there {
		writes := d.Operation == kadm.OpWrite || d.Operation == kadm.OpAll
		if !writes || d.Permission != kmsg.ACLPermissionTypeAllow || slices.ContainsFunc(wanted, func(w acl) bool {
			return w.Name == topic && w.operation == kadm.OpWrite && w.Principal == d.Principal
		}) {
			continue
		}
		one := acl{"stranger", d.Principal, strings.ToLower(d.Operation.String()), "topic", d.Name, d.Operation}
		if d.Pattern == kadm.ACLPatternPrefixed {
			one.Name += "*"
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

func makeACL(ctx context.Context, admin *kadm.Client, w acl) error {
	results, err := admin.CreateACLs(ctx, onResource(w).ResourcePatternType(kadm.ACLPatternLiteral).Operations(w.operation).Allow(w.Principal))
	for _, r := range results {
		err = cmp.Or(err, r.Err)
	}
	return err
}

func aclFailure(err error, connection string) error {
	switch {
	case errors.Is(err, kerr.SecurityDisabled):
		return cli.Hint(errors.New("the brokers have no authorizer: every client may write to every topic"),
			"Set authorizer.class.name at the brokers, or let producers sign and set commands.topics to shared topics only.")
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return cli.Hint(fmt.Errorf("the user of the connection %s may not see or change ACLs: %w", connection, err),
			"Name a connection whose user may, by --connection: DESCRIBE on the cluster for check, ALTER for apply.")
	}
	return consumer.BrokerError{Err: fmt.Errorf("the ACLs of the connection %s cannot be read or made: %w", connection, err)}
}
