package main

import (
	"cmp"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases: -X main.version=v1.2.3.
var version string

// build says what was built.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty: unknown
	Modified bool   `json:"modified"` // there were changes beside the commit
	Go       string `json:"go"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this build",
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.printer(cmd)
			if err != nil {
				return err
			}
			b := thisBuild()
			if p.json {
				return p.object(b)
			}
			commit := cmp.Or(b.Commit, "unknown")
			if b.Modified {
				commit += " and changes"
			}
			return p.linef("tidemark %s, commit %s, %s", b.Version, commit, b.Go)
		},
	}
}

func thisBuild() build {
	b := build{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = cmp.Or(b.Version, "unknown")
		return b
	}
	b.Version, b.Go = cmp.Or(b.Version, info.Main.Version, "(devel)"), info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
