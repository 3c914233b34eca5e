// Package cli holds what the commands of tidemark share: the tree of commands as data, the connection, output as text
// or JSON, exit statuses, completion and help. The commands import it; it knows none of them.
package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Command describes a command, or with Sub a group of commands.
type Command struct {
	Use     string // its name and arguments; [NAME] is optional, a|b is a choice, and WORKER, ROUTE, … complete
	Short   string
	Long    string // default: Short
	Example string
	Role    string // the role that may run it, for the hint that others get
	Needs   Needs
	Reason  Reason
	Columns Columns // flags that set the columns of a row
	Flags   func(*pflag.FlagSet)
	// MayBeEmpty are flags for which an empty text is as good as none. All others refuse it, but those of Columns.
	MayBeEmpty []string
	// Complete has the values of flags that are not names of the database.
	Complete map[string]func(*pflag.FlagSet) []cobra.Completion
	// Watchdog: a failure ends with StatusUnknown, since 1 says that Tidemark is unwell. Its Run calls Within.
	Watchdog bool
	// CheckArgs replaces the check against Use. dash is the number of arguments before --, or -1.
	CheckArgs func(path string, args []string, dash int) error
	Run       func(context.Context, *Session) error
	Sub       []Command
}

// Needs says what a command needs before it runs.
type Needs int

// The zero value suits most commands.
const (
	Schema   Needs = iota // a database with a schema that this build can work with
	Database              // a database
	Nothing               // neither; Session.Open connects later
)

// Reason says whether a command has the flag --reason, which the audit records.
type Reason int

// The zero value has no flag.
const (
	NoReason Reason = iota
	MayGiveReason
	NeedsReason
)

// build makes the command that cobra runs.
func (a *App) build(c Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example,
		Annotations: map[string]string{roleAnnotation: c.Role},
	}
	c.Columns.add(cmd.Flags())
	if c.Flags != nil {
		c.Flags(cmd.Flags())
	}
	reason := ""
	switch c.Reason {
	case MayGiveReason:
		cmd.Flags().StringVar(&reason, "reason", "", "why; the audit records it")
	case NeedsReason:
		cmd.Flags().StringVar(&reason, "reason", "", "why; the audit records it (required)")
	}
	for _, sub := range c.Sub {
		cmd.AddCommand(a.build(sub))
	}
	if c.Run == nil {
		strictGroup(cmd)
		return cmd
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		var err error
		if c.CheckArgs != nil {
			err = c.CheckArgs(cmd.CommandPath(), args, cmd.ArgsLenAtDash())
		} else {
			err = checkArgs(cmd, args)
		}
		if err != nil {
			return usageError{err}
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.run(cmd, c, args, reason) }
	a.complete(cmd, c.Complete)
	return cmd
}

func (a *App) run(cmd *cobra.Command, c Command, args []string, reason string) error {
	p, err := a.printer(cmd)
	if err != nil {
		return err
	}
	s := &Session{Printer: p, App: a, Args: args, Flags: cmd.Flags(), In: cmd.InOrStdin(), Reason: reason, cmd: cmd}
	defer s.close()
	err = s.work(cmd.Context(), c)
	if known := (Exit{}); c.Watchdog && err != nil && !errors.As(err, &known) && !errors.Is(err, context.Canceled) {
		return Exit{err, StatusUnknown}
	}
	return err
}

func (s *Session) work(ctx context.Context, c Command) error {
	if err := s.noEmptyFlag(c); err != nil {
		return err
	}
	if err := s.allUTF8(); err != nil {
		return err
	}
	if c.Reason == NeedsReason {
		if err := s.NeedReason(); err != nil {
			return err
		}
	}
	if c.Needs != Nothing {
		open := func(ctx context.Context) error { return s.open(ctx, c.Needs == Schema) }
		if c.Watchdog {
			unlimited := open
			open = func(ctx context.Context) error { return Within(ctx, unlimited) }
		}
		if err := open(ctx); err != nil {
			return s.nameRole(ctx, err)
		}
	}
	switch err := c.Run(ctx, s); {
	case s.failed != nil && (err == nil || errors.Is(err, s.failed)):
		return Hint(fmt.Errorf("the output cannot be written: %w", s.failed), "The command itself was done.")
	case err != nil:
		return s.nameRole(ctx, err)
	}
	return nil
}

// noEmptyFlag refuses a flag that was given without a text, such as by a variable of a shell that is not set: to most commands no
// filter means all.
func (s *Session) noEmptyFlag(c Command) (err error) {
	s.Flags.Visit(func(flag *pflag.Flag) {
		empty := flag.Value.String() == ""
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		column := slices.ContainsFunc(c.Columns, func(c Column) bool { return c.Flag == flag.Name })
		if empty && !column && !slices.Contains(c.MayBeEmpty, flag.Name) {
			err = Usagef("--%s is empty: give it a text, or leave it out", flag.Name)
		}
	})
	return err
}

// allUTF8 refuses a flag in another encoding: encoding/json would replace its bytes, and make one key of two. Names of files and
// folders may have any.
func (s *Session) allUTF8() (err error) {
	s.Flags.Visit(func(flag *pflag.Flag) {
		texts := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			texts = list.GetSlice()
		}
		name, _ := pflag.UnquoteUsage(flag)
		path := name == "FILE" || name == "FOLDER" || name == "STATE"
		if !path && slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) }) {
			err = Usagef("--%s is not UTF-8", flag.Name)
		}
	})
	return err
}

// strictGroup makes an unknown subcommand an error: cobra alone prints the group's help and succeeds.
func strictGroup(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = min(2, len(name)/3) // else "nope" suggests "type"
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return Usagef("%s; did you mean %s?", text, strings.Join(near, ", "))
	}
	if cmd.HasParent() {
		var names []string
		for _, sub := range cmd.Commands() {
			names = append(names, sub.Name())
		}
		text += "; its commands: " + strings.Join(names, ", ")
	}
	return Usagef("%s", text)
}

// checkArgs compares the arguments with the line of usage.
func checkArgs(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	if len(args) > len(names) {
		return fmt.Errorf("unexpected argument %q for %q", args[len(names)], cmd.CommandPath())
	}
	for i, name := range names {
		choices := strings.Split(strings.Trim(name, "[]"), "|")
		switch {
		case i >= len(args) && !strings.HasPrefix(name, "["):
			return fmt.Errorf("%q needs %s", cmd.CommandPath(), name)
		case i < len(args) && args[i] == "":
			return fmt.Errorf("%q: %s is empty", cmd.CommandPath(), strings.Trim(name, "[]"))
		case i < len(args) && len(choices) == 2 && args[i] != choices[0] && args[i] != choices[1]:
			return fmt.Errorf("%s %q is neither %s nor %s", cmd.Name(), args[i], choices[0], choices[1])
		}
	}
	return nil
}
