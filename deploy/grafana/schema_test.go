package main

import (
	"os"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	schema "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Grafana's own schema, from which Grafana makes this package, has each field of the files: of the dashboard, of its panels' options and
// fields, and of its queries. It is strict: an unknown field and a value of another type are errors.
func TestDashboardsFitTheSchema(t *testing.T) {
	t.Parallel()
	plugins.RegisterDefaultPlugins()
	for name := range dashboards() {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d schema.Dashboard                                                   //nolint:staticcheck // the dashboards are of this version of the schema, which older Grafanas read too
		if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" { // it returns an empty list of errors, too
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, wrong := range [][2]string{
			{`"uid":`, `"uuid":`}, {`"legend":`, `"legends":`}, {`"expr":`, `"expression":`}, {`"graphTooltip": 1`, `"graphTooltip": "1"`},
		} {
			if mutant := strings.Replace(string(text), wrong[0], wrong[1], 1); mutant != string(text) {
				//nolint:staticcheck // as above
				if err := new(schema.Dashboard).UnmarshalJSONStrict([]byte(mutant)); err == nil || err.Error() == "" {
					t.Errorf("%s: the schema takes %s", name, wrong[1])
				}
			}
		}
	}
}
