package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/yamldoc"
)

// mostBytes bounds the file, and each file that it refers to.
const mostBytes = 1 << 20

// Load reads a configuration. From the lowest precedence to the highest: the defaults, the file at path (empty: none),
// the variables of environ, each NAME=VALUE as in os.Environ. An error is an [*Error] with all problems.
//
// A value of the file may contain ${env:NAME} and ${file:/path}, which stand for a variable and for the text of a file
// without its last end of line; $${ is a plain ${. A text, a number, true or false is overridden by the variable
// TIDEMARK_ with the path in capitals, such as TIDEMARK_ADMIN_LISTEN for admin.listen, unless that is empty; not within
// secrets and connections. In variables references are plain text.
func Load(path string, environ []string) (Config, error) {
	var text []byte
	if path != "" {
		var err error
		if text, err = readAtMost(path); err != nil {
			return Config{}, &Error{[]Problem{{File: path, Text: "cannot be read: " + reason(err)}}}
		}
	}
	host, _ := os.Hostname()
	return load(path, text, environ, host)
}

func load(file string, text []byte, environ []string, host string) (Config, error) {
	d := &decoder{file: file, env: variables(environ), places: map[string]place{}, shown: map[string]string{}, secretFiles: map[string]bool{}}
	c := Default()
	root, problem := yamldoc.Parse(text)
	if problem != nil {
		return Config{}, &Error{[]Problem{{File: file, Line: problem.Line, Text: problem.Text}}}
	}
	d.decode(root, &c)
	d.fallback(&c)
	d.validate(c)
	if len(d.problems) > 0 {
		slices.SortStableFunc(d.problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Variable, b.Variable), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
		})
		return Config{}, &Error{d.problems}
	}
	c.Name = cmp.Or(c.Name, plainName(host))
	c.Warnings = append(unknown(d.env), d.readable(c)...)
	c.shown = d.shown
	return c, nil
}

// validate adds the problems between keys. A value that could not be read is not missing as well.
func (d *decoder) validate(c Config) {
	read := len(d.problems)
	for _, p := range c.Validate() {
		if !p.missing || !failed(d.problems[:read], p.Key) {
			d.problem(p.Key, p.Text)
		}
	}
}

// failed tells whether a key, or one that holds it, has a problem.
func failed(problems []Problem, path string) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool {
		return p.Key == path || p.Key != "" && strings.HasPrefix(path, p.Key+".")
	})
}

// readable warns of files with secrets that users other than their owner can read.
func (d *decoder) readable(c Config) (warnings []string) {
	files := map[string]bool{}
	if d.file != "" && d.literal {
		files[d.file] = true
	}
	maps.Copy(files, d.secretFiles)
	files[c.Commands.Ingress.KeyFile] = true // no name is no file
	for _, one := range c.Connections {
		for _, name := range []string{one.CredentialsFile, one.NKeyFile, one.TLS.KeyFile} {
			files[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		info, err := os.Stat(name)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o044 != 0 {
			warnings = append(warnings, fmt.Sprintf("file %s holds secrets and is readable by others (mode %04o): chmod 0600 %s", name, info.Mode().Perm(), name))
		}
	}
	return warnings
}

// fallback reads DATABASE_URL, where many platforms put the address of the database.
func (d *decoder) fallback(c *Config) {
	const path, variable = "database.url", "DATABASE_URL"
	address := d.env[variable]
	if address == "" || !c.Database.URL.IsZero() {
		return
	}
	c.Database.URL = NewSecret(address)
	delete(d.shown, path)
	d.places[path] = place{variable: variable}
	if !isDatabase(address) {
		d.problem(path, "must be "+formNames["database"])
	}
}

// plainName makes a valid name of the host's.
func plainName(host string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9_.-]`).ReplaceAllString(host, "-")
	name = strings.TrimLeft(name[:min(len(name), 63)], ".-")
	return cmp.Or(name, "tidemark")
}

func readAtMost(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = errors.New("it is larger than 1 MiB")
	}
	return text, err
}

// reason is the error without the path, which the message has elsewhere.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}
