package daemon_test

import (
	"os"
	"os/exec"
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
