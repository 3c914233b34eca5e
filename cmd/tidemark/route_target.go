package main

import (
	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/target"
)

// targetKinds are the kinds of targets, by name.
func targetKinds() (all []string) {
	for _, k := range target.Kinds() {
		all = append(all, k.Kind)
	}
	return all
}

// completeTargets completes --target-kind, and --option by the kind that is given or else by all.
func completeTargets(cmd *cobra.Command) {
	complete := func(flag string, values func() []cobra.Completion, more cobra.ShellCompDirective) {
		err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp | more
		})
		if err != nil {
			panic(err) // there is no such flag
		}
	}
	complete("target-kind", func() (all []cobra.Completion) {
		for _, k := range target.Kinds() {
			all = append(all, cobra.CompletionWithDesc(k.Kind, k.Ref))
		}
		return all
	}, 0)
	complete("option", func() (all []cobra.Completion) {
		kinds := targetKinds()
		if kind, _ := cmd.Flags().GetString("target-kind"); kind != "" {
			kinds = []string{kind}
		}
		seen := map[string]bool{}
		for _, kind := range kinds {
			for _, o := range target.Options(kind) {
				if !seen[o.Option] {
					all = append(all, cobra.CompletionWithDesc(o.Option+"=", o.Meaning))
				}
				seen[o.Option] = true
			}
		}
		return all
	}, cobra.ShellCompDirectiveNoSpace)
}
