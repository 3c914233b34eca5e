package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/oneline"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/packs"
)

// completionTime bounds the wait of a shell for names.
const completionTime = time.Second

// named reads the names of a kind of thing. The argument WORKER completes with the workers, and so does the flag
// --worker.
var named = map[string]func(context.Context, *store.DB) ([]string, error){
	"COMMAND": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(c store.Command) string { return c.Name })(db.Commands(ctx, ""))
	},
	"DOMAIN": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(d store.Domain) string { return d.Domain })(db.Domains(ctx))
	},
	"EXECUTOR": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(h store.Heartbeat) string { return h.ExecutorID })(db.Heartbeats(ctx, store.Part{}))
	},
	"GATE": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(g store.Gate) string { return g.Gate })(db.Gates(ctx))
	},
	"ROUTE": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(r store.Route) string { return r.RouteCode })(db.Routes(ctx, store.RouteFilter{}))
	},
	"SERVICE": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(s store.Service) string { return s.Service })(db.Services(ctx))
	},
	"SETTING": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(s store.Setting) string { return s.Key })(db.Settings(ctx))
	},
	"SOURCE": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(s store.Source) string { return s.Source })(db.Sources(ctx, store.Part{}))
	},
	"TYPE": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(t store.EventType) string { return t.Type })(db.EventTypes(ctx, "", store.Part{}))
	},
	"WORKER": func(ctx context.Context, db *store.DB) ([]string, error) {
		return names(func(w store.Worker) string { return w.Worker })(db.Workers(ctx))
	},
}

func names[T any](name func(T) string) func([]T, error) ([]string, error) {
	return func(all []T, err error) (names []string, _ error) {
		for _, one := range all {
			names = append(names, name(one))
		}
		return names, err
	}
}

// complete adds the completion of arguments and flags.
func (a *App) complete(cmd *cobra.Command, values map[string]func(*pflag.FlagSet) []cobra.Completion) {
	arguments := strings.Fields(cmd.Use)[1:]
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if arguments[len(args)] == "DIR" {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return a.names(cmd, strings.Trim(arguments[len(args)], "[]")), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		kind, own := strings.ToUpper(flag.Name), values[flag.Name]
		if own == nil && named[kind] == nil && kind != "PACK" {
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(flag.Name,
			func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
				if own == nil {
					return a.names(cmd, kind), cobra.ShellCompDirectiveNoFileComp
				}
				all := own(cmd.Flags())
				directive := cobra.ShellCompDirectiveNoFileComp
				if len(all) > 0 && strings.Contains(all[0], "=") {
					directive |= cobra.ShellCompDirectiveNoSpace // a value follows
				}
				return all, directive
			})
	})
}

// names are the values of an argument: the choices, or what the database has, if it answers in time.
func (a *App) names(cmd *cobra.Command, argument string) (all []string) {
	if strings.Contains(argument, "|") {
		return strings.Split(argument, "|")
	}
	if argument == "PACK" {
		known, _ := packs.All()
		for _, pack := range known {
			all = append(all, pack.Name)
		}
		return all
	}
	read := named[argument]
	if read == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	conn, err := a.Connect(ctx, &Printer{Err: io.Discard})
	if err != nil {
		return nil
	}
	defer Close(conn)
	all, _ = read(ctx, store.New(conn))
	// Such a name could control the terminal.
	return slices.DeleteFunc(all, func(name string) bool { return oneline.Clean(name) != name })
}
