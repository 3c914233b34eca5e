package daemon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const alerts = "../../deploy/prometheus/"

// Each alert rule fires on the metrics that mean it, and none on those of normal work.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		check := exec.CommandContext(t.Context(), promtool, args...)
		check.Dir = alerts
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// docs/daemon.md has each rule with its severity, and a configuration that Prometheus takes.
func TestAlertRulesOfThePage(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(alerts + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/daemon.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`(?s)- alert: (\w+)\n.*?severity: (\w+)`).FindAllSubmatch(rules, -1) {
		want = append(want, string(m[1])+" "+string(m[2]))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(Tidemark\\w+)` \\| (\\w+) \\|").FindAllSubmatch(page, -1) {
		got = append(got, string(m[1])+" "+string(m[2]))
	}
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("the page has %q, the rules are %q", got, want)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
	block := regexp.MustCompile("(?s)```yaml\n(rule_files: \\[(\\S+)\\]\n.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no configuration for Prometheus")
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"prometheus.yml": block[1], string(block[2]): rules} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "config", filepath.Join(dir, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// A rule about a metric that the daemon does not have would never fire. Every alert has a test.
func TestAlertRulesAskForMetrics(t *testing.T) {
	t.Parallel()
	read := func(names ...string) (text string) {
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text += string(b)
		}
		return text
	}
	code := read("metrics.go", "health_metrics.go", "commands_metrics.go")
	var has []string
	for _, m := range regexp.MustCompile(`(?:"tidemark_|desc\(")(\w+)"`).FindAllStringSubmatch(code, -1) {
		has = append(has, m[1])
	}
	rules, tests := read(alerts+"rules.yaml"), read(alerts+"rules_test.yaml")
	for _, m := range regexp.MustCompile(`tidemark_(\w+?)(_bucket)?\b`).FindAllStringSubmatch(regexp.MustCompile(`description: .*`).ReplaceAllString(rules, ""), -1) {
		if !slices.Contains(has, m[1]) {
			t.Errorf("a rule asks for tidemark_%s, which the daemon does not have", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`runbook_url: "?https://github.com/tidemarkhq/tidemark/blob/main/([^"#\n]+)`).FindAllStringSubmatch(rules, -1) {
		page := strings.ReplaceAll(m[1], "{{ $labels.kind }}", "README") // each kind of finding has a page: TestEveryCauseHasAPage
		if _, err := os.Stat("../../" + page); err != nil {
			t.Error(err)
		}
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		if !regexp.MustCompile(`ALERTS\{alertname="` + m[1] + `"`).MatchString(tests) {
			t.Errorf("no test sees the alert %s fire", m[1])
		}
	}
}
