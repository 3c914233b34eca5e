package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidemarkhq/tidemark/sql"
)

// A migration changes tables. It runs once.
type migration struct {
	version  int
	name     string
	text     string
	checksum string
	// breaking: workers of earlier releases must not run on the schema after it.
	breaking bool
}

// A codeFile creates a function and its triggers, or a view. It runs again whenever a file of code changes.
type codeFile struct {
	sql.File

	view bool
}

// An object is a function, trigger or view.
type object struct {
	name     string
	checksum string // checksum of its file
}

type files struct {
	migrations []migration
	code       []codeFile // in the order in which they run
	objects    []object
}

var (
	migrationName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)
	breaks        = regexp.MustCompile(`^-- breaking(: .*)?\n`)
	named         = regexp.MustCompile(`tidemark\.(\w+)`)
	made          = regexp.MustCompile(`^create or replace (function|trigger|view) (?:tidemark\.)?(\w+)`)
)

// embedded holds the SQL files of this build. It panics if they are wrong: they are compiled in, so the first test finds
// the mistake.
var embedded = sync.OnceValue(func() files {
	f, err := load(sql.Files)
	if err != nil {
		panic(err)
	}
	return f
})

func load(fsys fs.FS) (files, error) {
	var f files
	err := each(fsys, "migrations", func(name, text string) error {
		m := migrationName.FindStringSubmatch(name)
		if m == nil {
			return fmt.Errorf("migrations/%s: not named NNNN_name.sql", name)
		}
		version, err := strconv.Atoi(m[1])
		if err != nil {
			return err
		}
		if version != len(f.migrations)+1 {
			return fmt.Errorf("migrations/%s: its number must be %d", name, len(f.migrations)+1)
		}
		f.migrations = append(f.migrations, migration{
			version: version, name: m[2], text: text, checksum: checksum(text),
			breaking: breaks.MatchString(text),
		})
		return nil
	})
	if err != nil {
		return files{}, err
	}
	err = f.addCode(fsys)
	return f, err
}

func (f *files) addCode(fsys fs.FS) error {
	code, err := sql.Code(fsys)
	if err != nil {
		return err
	}
	from := map[string]string{}
	for _, file := range code {
		var found [][]string
		for line := range strings.Lines(file.Text) {
			if m := made.FindStringSubmatch(line); m != nil {
				found = append(found, m)
			}
		}
		if len(found) == 0 || found[0][2] != file.Name() || found[0][1] == "trigger" {
			return fmt.Errorf("%s: must create a function or view named as the file", file.Path)
		}
		sum := checksum(file.Text)
		for i, m := range found {
			if i > 0 && (m[1] != "trigger" || found[0][1] != "function") {
				return fmt.Errorf("%s: creates %s too; only a function's triggers may share its file", file.Path, m[2])
			}
			if other, twice := from[m[2]]; twice {
				return fmt.Errorf("%s: creates %s, as does %s", file.Path, m[2], other)
			}
			from[m[2]] = file.Path
			f.objects = append(f.objects, object{name: m[2], checksum: sum})
		}
		f.code = append(f.code, codeFile{File: file, view: found[0][1] == "view"})
	}
	f.code, err = inOrder(f.code)
	return err
}

// inOrder puts functions first, which do not need each other while check_function_bodies is off, and then each view after
// the views that it reads.
func inOrder(code []codeFile) (ordered []codeFile, err error) {
	views := map[string]codeFile{}
	for _, c := range code {
		if c.view {
			views[c.Name()] = c
		} else {
			ordered = append(ordered, c)
		}
	}
	for len(views) > 0 {
		before := len(views)
		for _, name := range slices.Sorted(maps.Keys(views)) {
			reads := func(m []string) bool {
				_, left := views[m[1]]
				return left && m[1] != name
			}
			if v := views[name]; !slices.ContainsFunc(named.FindAllStringSubmatch(v.Text, -1), reads) {
				ordered = append(ordered, v)
				delete(views, name)
			}
		}
		if len(views) == before {
			return nil, fmt.Errorf("code/: these views read each other: %s", slices.Sorted(maps.Keys(views)))
		}
	}
	return ordered, nil
}

func each(fsys fs.FS, dir string, do func(name, text string) error) error {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(fsys, path.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if err := do(e.Name(), string(text)); err != nil {
			return err
		}
	}
	return nil
}

func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Fingerprint returns a hash of the SQL of this build, in hex. Two builds with the same fingerprint install the same
// schema.
func Fingerprint() string {
	var all strings.Builder
	for _, m := range embedded().migrations {
		all.WriteString(m.checksum)
	}
	for _, o := range embedded().objects {
		all.WriteString(o.name + o.checksum)
	}
	return checksum(all.String())
}
