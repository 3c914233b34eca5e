// Package packs holds the packs that come with Tidemark: domains, event types, routes
// and workers, as SQL and YAML. A pack is data; no code knows one by name.
package packs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed */pack.yaml */*.sql */bundles/*/sql/*.sql
var files embed.FS

// Pack is a set of rows to install.
type Pack struct {
	Name        string   `yaml:"pack"` // also the name of its folder
	Version     string   `yaml:"version"`
	Description string   `yaml:"description"`
	Workers     []string `yaml:"workers"` // workers that it brings
	Next        []string `yaml:"next"`    // what to do once it is installed, line by line

	// SQL installs the pack: the .sql files of its folder and of its bundles of commands, in the order of their paths. It
	// may be run again: what an operator has changed since stays. It wants one transaction.
	SQL string `yaml:"-"`
	// Checksum is the SHA-256 of SQL, in hex.
	Checksum string `yaml:"-"`
}

// All returns the packs, by name.
func All() ([]Pack, error) { return load(files) }

// Find returns the pack with the name. found is false where there is none.
func Find(name string) (pack Pack, found bool, err error) {
	all, err := All()
	if err != nil {
		return Pack{}, false, err
	}
	i := slices.IndexFunc(all, func(p Pack) bool { return p.Name == name })
	if i < 0 {
		return Pack{}, false, nil
	}
	return all[i], true, nil
}

func load(fsys fs.FS) ([]Pack, error) {
	folders, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var all []Pack
	for _, f := range folders {
		pack, err := read(fsys, f.Name())
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name(), err)
		}
		all = append(all, pack)
	}
	return all, nil
}

func read(fsys fs.FS, folder string) (Pack, error) {
	text, err := fs.ReadFile(fsys, path.Join(folder, "pack.yaml"))
	if err != nil {
		return Pack{}, err
	}
	var pack Pack
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&pack); err != nil {
		return Pack{}, fmt.Errorf("pack.yaml: %w", err)
	}
	switch {
	case pack.Name != folder:
		return Pack{}, fmt.Errorf("pack.yaml: pack is %q, must be the name of its folder", pack.Name)
	case pack.Version == "":
		return Pack{}, errors.New("pack.yaml: version is missing")
	}
	names, err := fs.Glob(fsys, path.Join(folder, "*.sql"))
	if err != nil {
		return Pack{}, err
	}
	ofBundles, err := fs.Glob(fsys, path.Join(folder, "bundles/*/sql/*.sql"))
	if err != nil {
		return Pack{}, err
	}
	names = append(names, ofBundles...)
	if len(names) == 0 {
		return Pack{}, errors.New("no file of its folder ends in .sql")
	}
	slices.Sort(names)
	var sql bytes.Buffer
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return Pack{}, err
		}
		sql.Write(text)
		sql.WriteByte('\n') // the last line of a file may have no end
	}
	sum := sha256.Sum256(sql.Bytes())
	pack.SQL, pack.Checksum = sql.String(), hex.EncodeToString(sum[:])
	return pack, nil
}
