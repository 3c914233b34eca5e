package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzLoad: a file is refused or makes a configuration that can be printed; and what is
// printed of one without secrets is that configuration.
func FuzzLoad(f *testing.F) {
	f.Add(example, "PG=host=x")
	for _, test := range append(bad, badConnections...) {
		f.Add(test.text, "YES=yes")
	}
	f.Add("name: ${file:/dev/null}\nadmin: {listen: ''}", "TIDEMARK_LEASE=1h")
	f.Fuzz(func(t *testing.T, text, variable string) {
		c, err := load("f.yaml", []byte(text), []string{variable, "KEY=k", "PORT=1"}, "host")
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a word")
			}
			return
		}
		printed, err := c.Print()
		if err != nil {
			t.Fatal(err)
		}
		if hasSecrets(c) || len(c.shown) > 0 {
			return
		}
		again, err := load("f.yaml", printed, nil, "host")
		if err != nil {
			t.Fatalf("%s\n%v", printed, err)
		}
		c.Warnings = nil
		if diff := cmp.Diff(c, again, compare); diff != "" {
			t.Errorf("%s\n%s", printed, diff)
		}
	})
}

func hasSecrets(c Config) bool {
	if len(c.Secrets) > 0 || !c.Database.URL.IsZero() || !c.Database.DirectURL.IsZero() {
		return true
	}
	for _, one := range c.Connections {
		if !one.Token.IsZero() || !one.Password.IsZero() || !one.SASL.Password.IsZero() {
			return true
		}
	}
	return false
}
