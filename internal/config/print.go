package config

import (
	"bytes"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Print is the configuration as YAML, without secrets: values that came from references are the references again, other
// secrets are "***". It can be loaded again if neither the file nor the environment contained a secret itself.
func (c Config) Print() ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(c.node("", reflect.ValueOf(c))); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

func (c Config) node(path string, v reflect.Value) *yaml.Node {
	if isScalar(v.Type()) {
		return c.scalarNode(path, v)
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key, path string, value reflect.Value) {
		n.Content = append(n.Content, textNode(key), c.node(path, value))
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			if !f.omit || !v.Field(f.index).IsZero() {
				add(f.key, join(path, f.key), v.Field(f.index))
			}
		}
	case reflect.Map:
		for _, key := range slices.Sorted(maps.Keys(names(v))) {
			add(key, joinName(path, key), v.MapIndex(reflect.ValueOf(key)))
		}
	case reflect.Slice:
		if _, single := c.shown[path]; single {
			return c.scalarNode(path, v.Index(0))
		}
		n.Kind = yaml.SequenceNode
		for i := range v.Len() {
			n.Content = append(n.Content, c.node(path+"["+strconv.Itoa(i)+"]", v.Index(i)))
		}
	}
	if len(n.Content) == 0 || (n.Kind == yaml.SequenceNode && len(n.Content) < 4) {
		n.Style = yaml.FlowStyle
	}
	return n
}

func names(v reflect.Value) map[string]bool {
	all := map[string]bool{}
	for _, key := range v.MapKeys() {
		all[key.String()] = true
	}
	return all
}

func (c Config) scalarNode(path string, v reflect.Value) *yaml.Node {
	if shown, found := c.shown[path]; found {
		return textNode(shown)
	}
	switch value := v.Interface().(type) {
	case int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(value)}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(value)}
	case time.Duration:
		return textNode(short(value))
	case netip.Prefix:
		return textNode(value.String())
	case Secret:
		return textNode(value.String())
	default:
		return textNode(escape.Replace(v.String()))
	}
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// short is 10m where the standard library says 10m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
