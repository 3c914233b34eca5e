package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
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
	// breaking: workers of an earlier release must not run after it.
	breaking bool
}

// An object is a function, trigger or view. Its file is run again whenever it changes.
type object struct {
	name     string
	kind     string
	text     string
	checksum string
}

type files struct {
	migrations []migration
	objects    []object
}

var (
	migrationName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.sql$`)
	objectKind    = regexp.MustCompile(`(?m)^create or replace (function|trigger|view)`)
)

// creationOrder: triggers and views need the functions that they call to exist, functions do not need each
// other while check_function_bodies is off.
var creationOrder = []string{"function", "trigger", "view"}

// embedded is what this build carries. Its files were compiled in, so what is wrong with them is wrong for
// every user of the build: a panic, which the first test meets.
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
			return fmt.Errorf("migrations/%s: number %d expected", name, len(f.migrations)+1)
		}
		f.migrations = append(f.migrations, migration{
			version: version, name: m[2], text: text, checksum: checksum(text),
			breaking: strings.HasPrefix(text, "-- breaking\n"),
		})
		return nil
	})
	if err != nil {
		return files{}, err
	}
	err = each(fsys, "code", func(name, text string) error {
		kinds := objectKind.FindAllStringSubmatch(text, -1)
		if len(kinds) != 1 {
			return fmt.Errorf("code/%s: %d objects, must be one", name, len(kinds))
		}
		f.objects = append(f.objects, object{
			name: strings.TrimSuffix(name, ".sql"), kind: kinds[0][1], text: text, checksum: checksum(text),
		})
		return nil
	})
	slices.SortStableFunc(f.objects, func(a, b object) int {
		return slices.Index(creationOrder, a.kind) - slices.Index(creationOrder, b.kind)
	})
	return f, err
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

// Fingerprint identifies the SQL of this build, in hex: two builds with the same one install the same schema.
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
