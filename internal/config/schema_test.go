package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func fits(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var document any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return err
	}
	return schema.Validate(document)
}

func TestSchemaAgreesWithLoad(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	printed, err := Default().Print()
	if err != nil {
		t.Fatal(err)
	}
	references := "name: '${env:A}'\nbatch: {max: '${env:A}'}\nlease: '${file:/a}'\nlog: {level: '${env:A}'}\nadmin: {pprof: '${env:A}'}"
	for _, text := range []string{example, string(printed), references} {
		if err := fits(t, schema, text); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
	for _, text := range []string{
		"colour: red", "database: {max: 3}", "admin: yes", "workers: default", "workers: ['']", "workers: ['a b']", "name: 5", "name: -x",
		"admin: {pprof: yes please}", "batch: {max: '10'}", "batch: {max: 0}", "batch: {max: 50001}", "lease: 30", "lease: soon",
		"webhook: {ports: [0]}", "webhook: {ports: [65536]}", "webhook: {allow: [127.0.0.1]}", "log: {level: INFO}",
		"secrets: {a: ''}", "secrets: {a: []}", "secrets: {a: ['']}", "secrets: {a/b: x}", "connections: {a: {}}", "connections: {a: {kind: amqp}}",
		"connections: {a: {kind: kafka, brokers: ['b:1'], token: y}}", "connections: {a: {kind: nats, url: 'nats://b', sasl: {user: u}}}",
		"connections: {a: {kind: kafka, brokers: ['b:1'], tls: {enabled: 1}}}",
	} {
		if fits(t, schema, text) == nil {
			t.Errorf("the schema takes %s", text)
		}
		if _, err := load("f.yaml", []byte(text), nil, "host"); err == nil {
			t.Errorf("Load takes %s", text)
		}
	}
}

// The comments, which become descriptions, state the bounds of the tags and the values of Default.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	comments, err := comments()
	if err != nil {
		t.Fatal(err)
	}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for _, f := range fieldsOf(v.Type()) {
			name := v.Type().Name() + "." + f.name
			comment := comments[name]
			if comment == "" || !strings.HasSuffix(comment, ".") {
				t.Errorf("%s is not described: %q", name, comment)
			}
			if low, high, ok := strings.Cut(bounds(f.StructTag), ".."); ok && isScalar(f.typ) &&
				(!strings.Contains(comment, "from "+low) || !strings.Contains(comment, "to "+high)) {
				t.Errorf("%s does not say its bounds: %q", name, comment)
			}
			value := v.Field(f.index)
			if want := fmt.Sprint(defaultOf(value)); isScalar(f.typ) && !value.IsZero() && !strings.Contains(comment, "Default: "+want) {
				t.Errorf("%s does not say its default %s: %q", name, want, comment)
			}
			switch {
			case isScalar(f.typ) || f.typ.Kind() == reflect.Slice || f.typ.Kind() == reflect.Map:
				if !strings.Contains(comment, "Default") && !strings.Contains(comment, "Needed") && !strings.Contains(comment, "needed") {
					t.Errorf("%s does not say its default: %q", name, comment)
				}
			case f.typ.Kind() == reflect.Struct:
				walk(value)
			}
			if f.typ.Kind() == reflect.Map && f.typ.Elem().Kind() == reflect.Struct {
				walk(reflect.Zero(f.typ.Elem()))
			}
		}
	}
	walk(reflect.ValueOf(Default()))
}
