package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/config"
)

// App is the program: its build and the flags that every command has.
type App struct {
	Build       Build
	DatabaseURL string
	output      string
}

// Group is a section of the root's help.
type Group struct {
	Title, Example string
	Commands       []Command
}

// Root makes the root of the tree of commands.
func (a *App) Root(name, short, long string, groups []Group) *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: short, Long: long, Version: a.Build.Version, SilenceErrors: true, SilenceUsage: true,
	}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title})
		for _, c := range g.Commands {
			cmd := a.build(c)
			cmd.GroupID = g.Title
			root.AddCommand(cmd)
		}
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().StringVar(&a.DatabaseURL, "database-url", "",
		"the database: a postgres:// URL or host=… dbname=…")
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "table", "table for people, or json: one object a line")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"},
		cobra.ShellCompDirectiveNoFileComp))
	install := groups[len(groups)-1].Title
	root.SetHelpCommand(helpCommand())
	root.SetHelpCommandGroupID(install)
	root.SetCompletionCommandGroupID(install)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Short, cmd.Long, cmd.Example = "Print the script that completes commands in a shell", aboutCompletion, "  tidemark completion bash > /etc/bash_completion.d/tidemark"
			strictGroup(cmd)
		}
	}
	strictGroup(root)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.help(cmd, groups) })
	return root
}

const aboutCompletion = `Print the script that completes commands, flags and names in a shell. Names of routes, workers,
sources, gates, domains and types come from the database, if it answers within a second.`

// Run runs the command line and returns its exit status.
func Run(ctx context.Context, root *cobra.Command) int {
	cmd, err := root.ExecuteContextC(ctx)
	return report(cmd, err)
}

// Build says what was built.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty: unknown
	Modified bool   `json:"modified"` // with changes that are not in the commit
	Go       string `json:"go"`
}

// ThisBuild describes the running binary. version comes from the linker, in releases.
func ThisBuild(version string) Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{Version: cmp.Or(version, "unknown")}
	}
	setting := func(key string) string {
		i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == key })
		if i < 0 {
			return ""
		}
		return info.Settings[i].Value
	}
	return Build{
		Version: cmp.Or(version, info.Main.Version, "(devel)"), Go: info.GoVersion,
		Commit: setting("vcs.revision"), Modified: setting("vcs.modified") == "true",
	}
}

// ReadConfig reads the daemon's configuration. --database-url has the last word in it.
func (a *App) ReadConfig(file string) (config.Config, error) {
	environ := os.Environ()
	if a.DatabaseURL != "" {
		environ = append(environ, "TIDEMARK_DATABASE_URL="+a.DatabaseURL)
	}
	return config.Load(configFile(file), environ)
}

// configFile is the file of the command line, else that of the environment.
func configFile(file string) string { return cmp.Or(file, os.Getenv(config.FileVariable)) }

// ConfigFile is the whole path of the file that ReadConfig reads. It is empty if no file is named.
func ConfigFile(file string) string {
	file = configFile(file)
	if whole, err := filepath.Abs(file); err == nil && file != "" {
		return whole
	}
	return file
}

// LoadConfig is ReadConfig, with warnings and problems on stderr, one a line.
func (s *Session) LoadConfig(file string) (config.Config, error) {
	c, err := s.App.ReadConfig(file)
	if err != nil {
		return c, s.BadConfig(err)
	}
	for _, warning := range c.Warnings {
		s.Note("warning: %s", warning)
	}
	return c, nil
}

// OpenAt opens the database that a flag or a variable names, or else that of the configuration.
func (s *Session) OpenAt(ctx context.Context, c config.Config) error {
	if s.App.DatabaseURL == "" {
		s.App.DatabaseURL = c.Database.URL.Reveal()
	}
	return s.Open(ctx)
}

// NeedBrokers returns an error unless the configuration says where commands are.
func NeedBrokers(c config.Config) error {
	if c.Commands.Connection != "" {
		return nil
	}
	return Hint(Usagef("the configuration has no commands.connection, which says where commands are"),
		"Give the daemon's configuration: --config FILE, or TIDEMARK_CONFIG.")
}

// BadConfig prints the problems of a configuration and returns an error that counts them.
func (p *Printer) BadConfig(err error) error {
	var bad *config.Error
	if !errors.As(err, &bad) {
		return err
	}
	for _, problem := range bad.Problems {
		p.remark(problem.String())
	}
	return Hint(Usagef("the configuration has %s", Count(len(bad.Problems), "problem")),
		"tidemark config schema describes every key.")
}

// ConfigFlag adds the flag --config, whose value is for LoadConfig.
func ConfigFlag(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "config", "", "`FILE` with the configuration; default: TIDEMARK_CONFIG")
}
