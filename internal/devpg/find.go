package devpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

const oldest = 15 // the oldest release of PostgreSQL that Tidemark supports

// systemPaths are the places where packages install the server's programs, which
// are seldom in PATH: Debian, PGDG's RPMs, Alpine, Homebrew on ARM and on Intel,
// Postgres.app.
var systemPaths = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// binaries finds a directory with initdb and postgres. If the caller or PG_BIN
// names a directory that does not fit, binaries fails rather than search others.
func binaries(named string, fetch func() (string, error)) (string, error) {
	if named != "" {
		return named, Usable(named)
	}
	if dir := os.Getenv("PG_BIN"); dir != "" {
		if err := Usable(dir); err != nil {
			return "", fmt.Errorf("PG_BIN: %w", err)
		}
		return dir, nil
	}
	if fetch == nil {
		fetch = func() (string, error) { return "", errors.New("not in the usual places, nor in PATH") }
	}
	return find(systemPaths, fetch)
}

func find(globs []string, fetch func() (string, error)) (string, error) {
	var candidates []string
	for _, glob := range globs {
		dirs, _ := filepath.Glob(glob) // fails only on a bad pattern
		slices.SortFunc(dirs, func(a, b string) int { return pathVersion(b) - pathVersion(a) })
		candidates = append(candidates, dirs...)
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil { //nolint:noctx // answers at once
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		candidates = append(candidates, filepath.Dir(path))
	}
	for _, dir := range candidates {
		if Usable(dir) == nil {
			return dir, nil
		}
	}
	dir, err := fetch()
	if err != nil {
		install := "apt-get install postgresql"
		if runtime.GOOS == "darwin" {
			install = "brew install postgresql@17"
		}
		return "", fmt.Errorf("PostgreSQL %d or newer is not on this machine (%w); install it with `%s`, or set PG_BIN to the directory of initdb and postgres",
			oldest, err, install)
	}
	return dir, nil
}

var number = regexp.MustCompile(`\d+`)

func pathVersion(dir string) int {
	n, _ := strconv.Atoi(number.FindString(filepath.Base(filepath.Dir(dir)) + " " + filepath.Base(dir)))
	return n
}

// Usable returns nil if dir has a server of a supported release. A directory of a
// client package has no server.
func Usable(dir string) error {
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output() //nolint:noctx // answers at once
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, "postgres"), err)
	}
	if major, _ := strconv.Atoi(number.FindString(string(out))); major < oldest {
		return fmt.Errorf("%s is older than PostgreSQL %d: %s", dir, oldest, strings.TrimSpace(string(out)))
	}
	return nil
}
