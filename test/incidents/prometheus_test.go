package incidents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/testserver"
)

// A tower is a Prometheus that scrapes the daemons of installations every second, with the alert rules.
type tower struct {
	t       *testing.T
	address string
	targets string          // the file with what it scrapes
	fired   map[string]bool // the rules of which an alert was seen
}

// waits are the durations that a rule waits before it fires. They are all that is different here from what operators get.
var waits = regexp.MustCompile(`(?m)^( +for: )\S+$`)

const rulesFile = "../../deploy/prometheus/rules.yaml"

func newTower(t *testing.T, daemon string) *tower {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed: scripts/tools.sh installs it")
	}
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &tower{t: t, targets: filepath.Join(dir, "targets.json"), fired: map[string]bool{}}
	w.scrapes(daemon)
	for name, text := range map[string]string{
		"rules.yaml": waits.ReplaceAllString(string(rules), "${1}2s"),
		"prometheus.yaml": "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n" +
			"scrape_configs: [{job_name: tidemark, file_sd_configs: [{files: [targets.json]}]}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// It tells no port that it has chosen itself. Another process may take the one that was free.
	for try := 0; ; try++ {
		address := fmt.Sprintf("127.0.0.1:%d", testserver.FreePort(t))
		log, ready := w.start(program, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
			"--web.listen-address="+address)
		switch {
		case ready:
			return w
		case try == 4:
			t.Fatalf("prometheus does not start: %s", log)
		}
	}
}

// start runs Prometheus until the test ends. False: it has ended itself.
func (w *tower) start(program string, args ...string) (log *bytes.Buffer, ready bool) {
	w.t.Helper()
	w.address = "http://" + strings.TrimPrefix(args[len(args)-1], "--web.listen-address=")
	c := exec.Command(program, args...)
	log = &bytes.Buffer{}
	c.Stderr = log
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	w.t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
		if w.t.Failed() {
			w.t.Logf("prometheus: %s", log.String())
		}
	})
	until(w.t, time.Minute, "prometheus is ready", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		r, err := http.Get(w.address + "/-/ready")
		if err == nil {
			_ = r.Body.Close()
			ready = r.StatusCode == http.StatusOK
		}
		return ready
	})
	return log, ready
}

// scrapes says which daemons it scrapes from now on.
func (w *tower) scrapes(daemons ...string) {
	w.t.Helper()
	text, err := json.Marshal([]map[string][]string{{"targets": daemons}})
	if err == nil {
		// A reader must not see half of it.
		err = os.WriteFile(w.targets+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(w.targets+".new", w.targets)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// get asks Prometheus.
func (w *tower) get(path string, answer any) {
	w.t.Helper()
	r, err := http.Get(w.address + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(r.Body).Decode(answer); err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
}

// firing returns the alerts that fire, each as its name and its labels.
func (w *tower) firing() (alerts map[string]bool) {
	w.t.Helper()
	var got struct {
		Data struct {
			Alerts []struct {
				State       string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	w.get("/api/v1/alerts", &got)
	alerts = map[string]bool{}
	for _, a := range got.Data.Alerts {
		if a.State != "firing" {
			continue
		}
		rule := a.Labels["alertname"]
		w.fired[rule] = true
		name := []string{rule}
		for _, label := range []string{"kind", "subject", "route", "name", "worker", "source", "service", "topic", "reason"} {
			name = append(name, a.Labels[label])
		}
		alerts[strings.Join(strings.Fields(strings.Join(name, " ")), " ")] = true
		page := strings.TrimPrefix(a.Annotations["runbook_url"], "https://github.com/tidemarkhq/tidemark/blob/main/")
		if path, _, _ := strings.Cut(page, "#"); path == page && path == a.Annotations["runbook_url"] {
			w.t.Errorf("%s: the runbook %s is none of ours", rule, page)
		} else if _, err := os.Stat("../../" + path); err != nil {
			w.t.Errorf("%s: its runbook: %v", rule, err)
		}
	}
	return alerts
}

// fires waits until these alerts fire.
func (w *tower) fires(alerts ...string) {
	w.t.Helper()
	for _, alert := range alerts {
		began := time.Now()
		until(w.t, 2*time.Minute, "the alert "+alert, func() bool { return w.firing()[alert] })
		w.t.Logf("%s fires after %s", alert, time.Since(began).Round(time.Second))
	}
}

// ends waits until these alerts do not fire any more.
func (w *tower) ends(alerts ...string) {
	w.t.Helper()
	for _, alert := range alerts {
		until(w.t, 2*time.Minute, "the end of the alert "+alert, func() bool { return !w.firing()[alert] })
	}
}

// all: each of the rules has fired.
func (w *tower) all() {
	w.t.Helper()
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !w.fired[m[1]] {
			w.t.Errorf("no incident fires %s", m[1])
		}
	}
}

// ask returns how many series the answer to the expression has.
func (w *tower) ask(expr string) int {
	w.t.Helper()
	var got struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	w.get("/api/v1/query?query="+url.QueryEscape(expr), &got)
	if got.Status != "success" {
		w.t.Fatalf("%s: %s", expr, got.Error)
	}
	return len(got.Data.Result)
}

// dashboards asks Prometheus for what each panel of the dashboards shows. With incidents on, each has something to show.
func (w *tower) dashboards() {
	w.t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		w.t.Fatalf("no dashboards: %v", err)
	}
	asked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			w.t.Fatal(err)
		}
		for _, p := range board.Panels {
			for _, q := range p.Targets {
				asked++
				expr := strings.ReplaceAll(q.Expr, "$__rate_interval", "1m")
				if w.ask(expr) == 0 {
					w.t.Errorf("%s: the panel %s is empty: %s", filepath.Base(file), p.Title, expr)
				}
			}
		}
	}
	w.t.Logf("%d queries of the dashboards have an answer", asked)
}
