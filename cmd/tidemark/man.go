//go:build man

// The tag keeps the generator of man pages out of the product. scripts/dist.sh runs
//
//	go run -tags man ./cmd/tidemark man FOLDER
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func init() {
	if len(os.Args) != 3 || os.Args[1] != "man" {
		return
	}
	root := newRoot()
	forMarkdown(root)
	header := &doc.GenManHeader{Section: "1", Source: "Tidemark " + root.Version, Manual: "Tidemark"}
	if err := doc.GenManTree(root, header, os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// forMarkdown marks the indented lines of a help text as code, as the generator understands it.
func forMarkdown(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	var text strings.Builder
	code := false
	for line := range strings.Lines(cmd.Long) {
		if indented := strings.HasPrefix(line, "  "); indented != code {
			text.WriteString("\n")
			code = indented
		}
		if code {
			line = "    " + line
		}
		text.WriteString(line)
	}
	cmd.Long = text.String()
	for _, sub := range cmd.Commands() {
		forMarkdown(sub)
	}
}
