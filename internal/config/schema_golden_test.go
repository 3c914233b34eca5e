package config

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
)

var update = flag.Bool("update", false, "write schema.json and docs/configuration.md")

// schema.json is made from the types, their tags and their comments.
func TestSchemaIsGolden(t *testing.T) {
	t.Parallel()
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(Schema())); diff != "" {
		t.Errorf("run go test ./internal/config -run TestSchemaIsGolden -update\n%s", diff)
	}
}

const (
	durationPattern  = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	networkPattern   = `^[0-9A-Fa-f.:]+/[0-9]+$`
	referencePattern = `\$\{(env|file):[^}]+\}`
)

func generate() ([]byte, error) {
	schema, err := reflected()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	return append(text, '\n'), err
}

func reflected() (*jsonschema.Schema, error) {
	comments, err := comments()
	if err != nil {
		return nil, err
	}
	reflector := &jsonschema.Reflector{
		Anonymous:                  true,
		DoNotReference:             true,
		ExpandedStruct:             true,
		RequiredFromJSONSchemaTags: true,
		FieldNameTag:               "yaml",
		Mapper:                     scalarSchema,
		LookupComment: func(t reflect.Type, field string) string {
			return comments[t.Name()+"."+field]
		},
	}
	schema := reflector.ReflectFromType(reflect.TypeFor[Config]())
	schema.Title = "Configuration of tidemark"
	schema.Description = "The configuration of the daemon, tidemark run."
	refine(schema, reflect.ValueOf(Default()))
	return schema, nil
}

// comments are those of the fields, by TYPE.FIELD.
func comments() (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		t, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		body, ok := t.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, f := range body.Fields.List {
			for _, name := range f.Names {
				all[t.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
		return false
	})
	return all, nil
}

func scalarSchema(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[Secret]():
		return &jsonschema.Schema{Type: "string"}
	case reflect.TypeFor[[]Secret]():
		least := uint64(1)
		one := &jsonschema.Schema{Type: "string", MinLength: &least}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{one, {Type: "array", Items: one, MinItems: &least}}}
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
	case reflect.TypeFor[netip.Prefix]():
		return &jsonschema.Schema{Type: "string", Pattern: networkPattern}
	}
	return nil
}

// refine adds to the schema of a struct what its tags and the defaults say.
func refine(s *jsonschema.Schema, defaults reflect.Value) {
	for _, f := range fieldsOf(defaults.Type()) {
		p, _ := s.Properties.Get(f.key)
		value := defaults.Field(f.index)
		switch {
		case isScalar(f.typ):
			restrict(p, f)
			p.Default = defaultOf(value)
			allowReference(p)
		case f.typ.Kind() == reflect.Struct:
			refine(p, value)
		case f.typ.Kind() == reflect.Slice:
			restrict(p.Items, f)
			allowReference(p.Items)
		case f.typ.Kind() == reflect.Map:
			p.PropertyNames = &jsonschema.Schema{Pattern: plainKey.String()}
			if f.typ.Elem().Kind() == reflect.Struct {
				refine(p.AdditionalProperties, reflect.Zero(f.typ.Elem()))
				if _, kinds := f.typ.Elem().FieldByName("Kind"); kinds {
					byKind(p.AdditionalProperties, f.typ.Elem())
				}
			}
		}
	}
}

func restrict(p *jsonschema.Schema, f field) {
	if choices := f.Get("enum"); choices != "" {
		for choice := range strings.SplitSeq(choices, ",") {
			p.Enum = append(p.Enum, choice)
		}
	}
	if low, high, ok := strings.Cut(bounds(f.StructTag), ".."); ok && p.Type == "integer" {
		p.Minimum, p.Maximum = json.Number(low), json.Number(high)
	}
	if f.Get("is") == "name" {
		p.Pattern = plainKey.String()
		if isScalar(f.typ) {
			p.Pattern = "^$|" + p.Pattern // the default
		}
	}
}

func defaultOf(v reflect.Value) any {
	if v.IsZero() {
		return nil
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return short(d)
	}
	return v.Interface()
}

// allowReference lets a reference stand where something narrower than text is asked for.
func allowReference(p *jsonschema.Schema) {
	if p.Type == "string" && p.Pattern == "" && p.Enum == nil {
		return
	}
	narrow := *p
	narrow.Description, narrow.Default = "", nil
	*p = jsonschema.Schema{
		Description: p.Description,
		Default:     p.Default,
		AnyOf:       []*jsonschema.Schema{&narrow, {Type: "string", Pattern: referencePattern}},
	}
}

// byKind keeps a connection to the keys of its kind.
func byKind(s *jsonschema.Schema, t reflect.Type) {
	s.Required = []string{"kind"}
	others := map[string][]string{}
	kinds, _ := t.FieldByName("Kind")
	for kind := range strings.SplitSeq(kinds.Tag.Get("enum"), ",") {
		for _, f := range fieldsOf(t) {
			if only := f.Get("kind"); only != "" && only != kind {
				others[kind] = append(others[kind], f.key)
			}
		}
		properties := jsonschema.NewProperties()
		properties.Set("kind", &jsonschema.Schema{Const: kind})
		then := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
		for _, key := range others[kind] {
			then.Properties.Set(key, jsonschema.FalseSchema)
		}
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: &jsonschema.Schema{Properties: properties}, Then: then})
	}
}
