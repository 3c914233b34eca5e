// Package packlist compares the packs of this build with those that are installed, and installs them.
package packlist

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
	"github.com/tidemarkhq/tidemark/packs"
)

// State is a pack of this build, or one that was installed by another.
type State struct {
	Pack        string     `json:"pack"`
	Version     string     `json:"version" doc:"Of this build; empty: this build does not have the pack."`
	Description string     `json:"description"`
	State       string     `json:"state" enum:"not installed,installed,outdated,unknown to this build"`
	Installed   string     `json:"installed_version" doc:"Empty: it is not installed."`
	InstalledAt *time.Time `json:"installed_at"`
	InstalledBy string     `json:"installed_by"`
}

// All returns the packs of this build, then those that others have installed.
func All(ctx context.Context, db *store.DB) (all []State, err error) {
	known, err := packs.All()
	if err != nil {
		return nil, err
	}
	installed, err := db.Packs(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range known {
		all = append(all, State{Pack: p.Name, Version: p.Version, Description: p.Description, State: "not installed"})
	}
	for _, i := range installed {
		n := slices.IndexFunc(known, func(p packs.Pack) bool { return p.Name == i.Pack })
		if n < 0 {
			all = append(all, State{Pack: i.Pack, State: "unknown to this build"})
			n = len(all) - 1
		} else if all[n].State = "outdated"; i.Checksum == known[n].Checksum {
			all[n].State = "installed"
		}
		all[n].Installed, all[n].InstalledAt, all[n].InstalledBy = i.Version, &i.InstalledAt, i.InstalledBy
	}
	return all, nil
}

// Find returns a pack of this build.
func Find(name string) (packs.Pack, error) {
	pack, found, err := packs.Find(name)
	if found || err != nil {
		return pack, err
	}
	all, err := packs.All()
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	refused := &tidemark.Error{
		Code: "TM004", Message: `there is no pack "` + name + `"`,
		Hint: "Packs: " + strings.Join(names, ", "),
	}
	return pack, cmp.Or[error](err, refused)
}

// Details are a pack and what belongs to it.
type Details struct {
	State
	Workers []string `json:"workers" doc:"That it brings. They are closed until their gates are opened."`
	Next    []string `json:"next" doc:"What to do once it is installed."`
}

// Get returns a pack of this build.
func Get(ctx context.Context, db *store.DB, name string) (d Details, err error) {
	pack, err := Find(name)
	if err != nil {
		return d, err
	}
	all, err := All(ctx, db)
	if err != nil {
		return d, err
	}
	n := slices.IndexFunc(all, func(s State) bool { return s.Pack == name })
	return Details{all[n], pack.Workers, pack.Next}, nil
}

// Install installs a pack of this build, or upgrades it, in the transaction of db.
func Install(ctx context.Context, db *store.DB, pack packs.Pack) (store.Pack, error) {
	prefix, err := db.RolePrefix(ctx)
	if err != nil {
		return store.Pack{}, err
	}
	return db.InstallPack(ctx, pack.Name, pack.Version, pack.Checksum, migrate.NameRoles(pack.SQL, prefix))
}
