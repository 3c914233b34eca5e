package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

const (
	variablePrefix = "TIDEMARK_"
	FileVariable   = "TIDEMARK_CONFIG" // the command's, for the path
)

func variables(environ []string) map[string]string {
	env := map[string]string{}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

// variableOf names the variable that overrides a key.
func variableOf(path string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// keys has the paths of all keys of t down to maps and lists, and whether a variable can override them.
func keys(t reflect.Type, prefix string) map[string]bool {
	all := map[string]bool{}
	for _, f := range fieldsOf(t) {
		path := join(prefix, f.key)
		if f.typ.Kind() == reflect.Struct && !isScalar(f.typ) {
			maps.Copy(all, keys(f.typ, path))
		} else {
			all[path] = isScalar(f.typ)
		}
	}
	return all
}

var configKeys = keys(reflect.TypeFor[Config](), "")

// unknown warns of variables whose names look like ours.
func unknown(env map[string]string) []string {
	known := []string{FileVariable}
	others := map[string]string{}
	for path, scalar := range configKeys {
		if scalar {
			known = append(known, variableOf(path))
		} else {
			others[variableOf(path)] = path
		}
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name) {
			continue
		}
		text := fmt.Sprintf("variable %s is unknown", name)
		if path := others[name]; path != "" {
			text = fmt.Sprintf("variable %s is ignored: only the file can set %s", name, path)
		} else if close := near(name, known); close != "" {
			text += "; did you mean " + close + "?"
		}
		warnings = append(warnings, text)
	}
	return warnings
}

// near is the known name that a misspelt one may mean, or empty.
func near(name string, known []string) string {
	best, distance := "", 3 // two letters, and one in three at most
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := apart(plain(name), plain(k)); d < distance && 3*d <= len(name) {
			best, distance = k, d
		}
	}
	if best != "" || len(name) < 3 {
		return best
	}
	for _, k := range slices.Sorted(slices.Values(known)) {
		if len(k) >= 3 && (strings.HasPrefix(plain(k), plain(name)) || strings.HasPrefix(plain(name), plain(k))) {
			return k
		}
	}
	return ""
}

// plain removes the differences between maxConnections, max-connections and max_connections.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// apart is the Levenshtein distance.
func apart(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
