package config

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// secretPlaces are the keys that take a secret.
var secretPlaces = []string{
	"database: {url: %s}",
	"database: {direct_url: %s}",
	"secrets: {a: %s}",
	"secrets: {a: [%s, other]}",
	"connections: {a: {kind: kafka, brokers: ['b:1'], tls: {enabled: true}, sasl: {mechanism: PLAIN, user: u, password: %s}}}",
	"connections: {a: {kind: nats, url: 'tls://b', user: u, password: %s}}",
	"ping: {url: %s}",
	"oauth2: {a: {token_url: 'https://b', client_id: c, client_secret: %s}}",
	"connections: {a: {kind: nats, url: 'tls://b', token: %s}}",
	"commands: {registry: {url: 'https://b', user: u, password: %s}}",
}

// secretMistakes puts a secret in a wrong place.
var secretMistakes = []string{
	"lease: %s", "lease: [%s]", "workers: %s", "workers: {a: %s}", "admin: %s", "admin: {pprof: %s}", "batch: {max: %s}",
	"admin: {listen: [%s]}", "log: {level: %s}", "webhook: {allow: [%s]}", "webhook: {ports: [%s]}", "secrets: %s", "secrets: [%s]",
	"secrets: {a: {b: %s}}", "secrets: {a: [[%s]]}", "connections: %s", "connections: {a: %s}", "connections: {a: {kind: %s}}",
	"connections: {a: {kind: kafka, brokers: [%s]}}", "connections: {a: {kind: kafka, tls: {enabled: %s}}}",
	"connections: {a: {kind: kafka, tls: %s}}", "connections: {a: {kind: nats, token: {x: %s}}}", "nothing: %s", "%s", "- %s",
	"secrets: {a: !!int %s}", "secrets: {a: !x %s}", "name: ok\nname: %s", "secrets: {a: x\n%s", "secrets: {a: ${env:%s}",
}

// bareMistakes writes a secret wrongly, without quotes.
var bareMistakes = []string{
	"secrets: {a: *%s}", "secrets: {a: %%%s}", "secrets: {a: @%s}", "secrets: {a: '%s}", "secrets: {a: \"\\z%s\"}", "secrets: {a:%s x}",
	"connections: {a: {kind: nats, token:%s}}", "connections: {a: {kind: nats, token %s}}", "secrets:\n  a %s\n", "secrets:\n  a: b: %s\n",
	"connections: {a: {kind: nats, url: 'nats://u:%s@b'}}", "connections: {a: {kind: nats, url: 'nats://%s@b'}}", "%%%s", "secrets: {a/%s: x}",
	"secrets: {a: x}\n--- %s", "secrets: {a: !!int %s}", "secrets: {a: !!binary %s}", "secrets: {a: &x y, b: *x%s}",
}

// No form of a configuration, and no form of an error about one, contains the text of a secret.
func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	loaded, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		core := rapid.StringMatching(`[a-zA-Z]{8}[0-9]{8}`).Draw(t, "core")
		around := rapid.StringMatching(`[ -~]{0,3}`)
		secret := around.Draw(t, "before") + core + around.Draw(t, "after")
		document, environ := secretDocument(t, dir, core, secret)
		c, err := load("f.yaml", []byte(document), environ, "host")
		outputs := map[string]string{"schema": string(Schema())}
		if err != nil {
			refused++
			everyForm(outputs, "error", err)
			var problems *Error
			if errors.As(err, &problems) {
				everyForm(outputs, "problems", problems.Problems)
			}
		} else {
			loaded++
			text, err := c.Print()
			if err != nil {
				t.Fatal(err)
			}
			outputs["Print"] = string(text)
			everyForm(outputs, "config", c)
			everyForm(outputs, "pointer", &c)
			everyForm(outputs, "hidden", struct{ inner Config }{c})
			everyForm(outputs, "secrets", c.Secrets)
		}
		for name, output := range outputs {
			for _, form := range []string{core, hex.EncodeToString([]byte(core)), strings.ToUpper(hex.EncodeToString([]byte(core)))} {
				if strings.Contains(output, form) {
					t.Fatalf("%s of\n%s\nis %s", name, document, output)
				}
			}
		}
	})
	if loaded == 0 || refused == 0 { // 20 draws with -short, 100 without
		t.Errorf("%d loaded and %d refused: the test tests too little", loaded, refused)
	}
}

func secretDocument(t *rapid.T, dir, core, secret string) (document string, environ []string) {
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	environ = []string{"S=" + secret, "TIDEMARK_ADMIN_PPROF=true"}
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); kind {
	case 0:
		return strings.ReplaceAll(rapid.SampledFrom(bareMistakes).Draw(t, "mistake"), "%s", core), environ
	case 1:
		return "", append(environ, rapid.SampledFrom([]string{
			"TIDEMARK_LEASE", "TIDEMARK_BATCH_MAX", "TIDEMARK_DATABASE_URL", "DATABASE_URL", "TIDEMARK_WORKERS", "TIDEMARK_X", "TIDEMARK_LOG_LEVEL",
		}).Draw(t, "variable")+"="+secret)
	default:
		file := filepath.Join(dir, "secret")
		if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		written := rapid.SampledFrom([]string{
			string(quoted), string(quoted), `"${env:S}"`, `"${file:` + file + `}"`, `"` + core + `${env:S}"`, `"postgres://u:` + core + `@h/d"`, `"host=h password=` + core + `"`,
		}).Draw(t, "written")
		if kind == 2 {
			return fmt.Sprintf(rapid.SampledFrom(secretMistakes).Draw(t, "mistake"), written), environ
		}
		document = fmt.Sprintf(rapid.SampledFrom(secretPlaces).Draw(t, "place"), written)
		if rapid.Bool().Draw(t, "second") {
			document += "\nlease: " + rapid.SampledFrom([]string{"1s", "5s"}).Draw(t, "lease")
		}
		return document, environ
	}
}

func everyForm(outputs map[string]string, name string, v any) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%e", "%10.3s"} {
		outputs[name+verb] = fmt.Sprintf(verb, v)
	}
	if text, err := json.Marshal(v); err == nil {
		outputs[name+" as JSON"] = string(text)
	}
	var y bytes.Buffer
	if _, isError := v.(error); !isError && yaml.NewEncoder(&y).Encode(v) == nil {
		outputs[name+" as YAML"] = y.String()
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "v", v, slog.Group("g", "v", v))
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "v", v, slog.Group("g", "v", v))
	outputs[name+" logged"] = logged.String()
}

func TestSecret(t *testing.T) {
	t.Parallel()
	s, empty := NewSecret("hidden"), NewSecret("")
	type outer struct {
		S Secret
		P *Secret
		s Secret
	}
	for want, got := range map[string]string{
		"***":                                 fmt.Sprintf("%v", s),
		"*** ***":                             fmt.Sprintf("%s %d", s, s),
		`config.NewSecret("***")`:             fmt.Sprintf("%#v", s),
		"<>":                                  fmt.Sprintf("<%v>", empty),
		`{"S":"***","P":"***"}`:               string(asJSON(t, outer{s, &s, s})),
		`{"S":"","P":null}`:                   string(asJSON(t, outer{})),
		"level=INFO msg=x s=*** p=*** z=\"\"": logLine(s, empty),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := fmt.Sprintf("%+v", outer{s: s}); strings.Contains(got, "hidden") {
		t.Error(got)
	}
	if s.Reveal() != "hidden" || !empty.IsZero() || s.IsZero() || !s.Equal(NewSecret("hidden")) || s.Equal(empty) {
		t.Error("the secret is lost")
	}
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func logLine(s, empty Secret) string {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).Info("x", "s", s, "p", &s, "z", empty)
	return strings.TrimSpace(out.String())
}
