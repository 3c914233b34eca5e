package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// help prints the help of a command. Lines of the text that begin with a space stay as they are; the others are
// wrapped.
func (a *App) help(cmd *cobra.Command, groups []Group) {
	width := 100
	if file, ok := cmd.OutOrStdout().(*os.File); ok {
		if columns, is := terminal(file); is {
			width = min(columns, 120)
		}
	}
	var text strings.Builder
	text.WriteString(reflow(cmp.Or(cmd.Long, cmd.Short), width))
	section := func(title, body string) {
		if body != "" {
			fmt.Fprintf(&text, "\n%s:\n%s\n", title, strings.TrimRight(body, "\n"))
		}
	}
	usage := cmd.CommandPath() + " COMMAND"
	if !cmd.HasAvailableSubCommands() {
		usage = cmd.UseLine()
	}
	section("Usage", "  "+usage)
	section("Examples", cmd.Example)
	if cmd.HasParent() {
		section("Commands", list(cmd, ""))
	} else {
		for _, g := range groups {
			section(g.Title, list(cmd, g.Title)+"\n  Example: "+g.Example)
		}
	}
	section("Flags", cmd.LocalFlags().FlagUsagesWrapped(width))
	section("Flags of every command", cmd.InheritedFlags().FlagUsagesWrapped(width))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\n%q tells more about a command.\n", cmd.CommandPath()+" COMMAND --help")
	}
	fmt.Fprint(cmd.OutOrStdout(), text.String())
}

// list is the commands of a group, with their short texts.
func list(cmd *cobra.Command, group string) string {
	var text strings.Builder
	for _, sub := range cmd.Commands() {
		if sub.GroupID == group && (sub.IsAvailableCommand() || sub.Name() == "help") {
			fmt.Fprintf(&text, "  %-*s  %s\n", cmd.Commands()[0].NamePadding(), sub.Name(), sub.Short)
		}
	}
	return text.String()
}

func reflow(text string, width int) string {
	var out, paragraph strings.Builder
	flush := func() {
		if paragraph.Len() > 0 {
			out.WriteString(strings.Join(wrap(paragraph.String(), width), "\n") + "\n")
			paragraph.Reset()
		}
	}
	for line := range strings.Lines(text) {
		if plain := strings.TrimRight(line, "\n"); plain == "" || plain[0] == ' ' {
			flush()
			out.WriteString(plain + "\n")
		} else {
			paragraph.WriteString(plain + " ")
		}
	}
	flush()
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// helpCommand replaces cobra's, which answers an unknown command with the root's help and success.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]...", Short: "Show the help of a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) == 0 {
				for _, sub := range about.Commands() {
					if strings.HasPrefix(sub.Name(), start) {
						all = append(all, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about := cmd.Root()
			for _, name := range args {
				sub, _, err := about.Find([]string{name})
				if err != nil || sub == about {
					return unknownCommand(about, name)
				}
				about = sub
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
