package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// expanded is a value with its references followed.
type expanded struct {
	text   string
	shown  string // what Print prints instead, where there are references
	refers bool

	literal bool // some of it is in the file itself
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	escape       = strings.NewReplacer("${", "$${")
)

// expand follows the references in a value, once: the text of a variable or a file is taken as it is.
func (d *decoder) expand(text string, secret bool) (expanded, string) {
	var out, shown strings.Builder
	var plain string
	literal := func(s string) {
		out.WriteString(s)
		plain += s
		switch {
		case !secret:
			shown.WriteString(escape.Replace(s))
		case s != "":
			shown.WriteString(redacted)
		}
	}
	refers := false
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			literal(text)
			return expanded{out.String(), shown.String(), refers, plain != ""}, ""
		}
		if strings.HasSuffix(before, "$") {
			literal(before[:len(before)-1] + "${")
			text = after
			continue
		}
		literal(before)
		reference, rest, closed := strings.Cut(after, "}")
		if !closed {
			return expanded{}, "has a reference without }; write $${ for a plain ${"
		}
		value, problem := d.follow(reference, secret)
		if problem != "" {
			return expanded{}, problem
		}
		out.WriteString(value)
		shown.WriteString("${" + reference + "}")
		refers, text = true, rest
	}
}

func (d *decoder) follow(reference string, secret bool) (value, problem string) {
	kind, name, _ := strings.Cut(reference, ":")
	switch {
	case kind == "env" && variableName.MatchString(name):
		value, found := d.env[name]
		if !found {
			return "", "variable " + name + " is not set"
		}
		return value, ""
	case kind == "file" && filepath.IsAbs(name):
		text, err := readSecret(name)
		if err != nil {
			return "", "file " + name + " cannot be read: " + reason(err)
		}
		if secret {
			d.secretFiles[name] = true
		}
		return text, ""
	default:
		return "", "has an unknown reference: write ${env:NAME} or ${file:/path}, or $${ for a plain ${"
	}
}

// readSecret wants a regular file: a pipe or a device could keep the daemon waiting.
func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	text, err := readAtMost(path)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}
