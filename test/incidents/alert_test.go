package incidents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// waits are the durations that a rule waits before it fires. They are all that is different here from what operators get.
var waits = regexp.MustCompile(`(?m)^( +for: )\S+$`)

// prometheus scrapes a daemon every second and applies the alert rules. It returns its address.
func (n *night) prometheus(target string) string {
	n.t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		n.t.Skip("prometheus is not installed: scripts/tools.sh installs it")
	}
	rules, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	if err != nil {
		n.t.Fatal(err)
	}
	dir := n.t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml": waits.ReplaceAllString(string(rules), "${1}2s"),
		"prometheus.yaml": "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n" +
			"scrape_configs: [{job_name: tidemark, static_configs: [{targets: ['" + target + "']}]}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			n.t.Fatal(err)
		}
	}
	// It tells no port that it has chosen itself. Another process may take the one that was free.
	for try := 0; ; try++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			n.t.Fatal(err)
		}
		address := l.Addr().String()
		_ = l.Close()
		c := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
			"--web.listen-address="+address)
		var log bytes.Buffer
		c.Stderr = &log
		if err := c.Start(); err != nil {
			n.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = c.Wait(); close(ended) }()
		n.t.Cleanup(func() {
			_ = c.Process.Kill()
			<-ended
			if n.t.Failed() {
				n.t.Logf("prometheus: %s", log.String())
			}
		})
		ready := false
		n.until("prometheus is ready", func() bool {
			select {
			case <-ended:
				return true
			default:
			}
			r, err := http.Get("http://" + address + "/-/ready")
			if err == nil {
				_ = r.Body.Close()
				ready = r.StatusCode == http.StatusOK
			}
			return ready
		})
		switch {
		case ready:
			return "http://" + address
		case try == 4:
			<-ended
			n.t.Fatalf("prometheus does not start: %s", log.String())
		}
	}
}

// firing returns the alerts that fire, each as its name and its labels.
func (n *night) firing(prometheus string) (alerts map[string]bool) {
	n.t.Helper()
	r, err := http.Get(prometheus + "/api/v1/alerts")
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var got struct {
		Data struct {
			Alerts []struct {
				State       string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		n.t.Fatal(err)
	}
	alerts = map[string]bool{}
	for _, a := range got.Data.Alerts {
		if a.State != "firing" {
			continue
		}
		name := []string{a.Labels["alertname"], a.Labels["kind"], a.Labels["subject"], a.Labels["route"]}
		alerts[strings.Join(strings.Fields(strings.Join(name, " ")), " ")] = true
		page := strings.TrimPrefix(a.Annotations["runbook_url"], "https://github.com/tidemarkhq/tidemark/blob/main/")
		if path, _, _ := strings.Cut(page, "#"); path == page && path == a.Annotations["runbook_url"] {
			n.t.Errorf("%s: the runbook %s is none of ours", a.Labels["alertname"], page)
		} else if _, err := os.Stat("../../" + path); err != nil {
			n.t.Errorf("%s: its runbook: %v", a.Labels["alertname"], err)
		}
	}
	return alerts
}

// mayBeEmpty are metrics of what does not happen here: commands, rows of tables, and deliveries that are due and not made.
var mayBeEmpty = regexp.MustCompile(`tidemark_(command_|dead_letter_rows_open|pending_overdue)`)

// dashboards asks Prometheus for what each panel of the dashboards shows. With an incident on, each has something to show.
func (n *night) dashboards(prometheus string) {
	n.t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		n.t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			n.t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			n.t.Fatal(err)
		}
		for _, p := range board.Panels {
			for _, q := range p.Targets {
				expr := strings.ReplaceAll(q.Expr, "$__rate_interval", "1m")
				if found := n.ask(prometheus, expr); found == 0 && !mayBeEmpty.MatchString(expr) {
					n.t.Errorf("%s: the panel %s is empty: %s", filepath.Base(file), p.Title, expr)
				}
			}
		}
	}
}

// ask returns how many series the answer to the expression has.
func (n *night) ask(prometheus, expr string) int {
	n.t.Helper()
	r, err := http.Get(prometheus + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var got struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil || got.Status != "success" {
		n.t.Fatalf("%s: %s %v", expr, got.Error, err)
	}
	return len(got.Data.Result)
}

// Incidents fire their alerts in a real Prometheus that scrapes a real daemon, and the alerts end when they are mended.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	var status atomic.Int64
	status.Store(http.StatusOK)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	t.Cleanup(target.Close)
	n.route("hook", "webhook", target.URL, `, "options": {"unsigned": true}`)
	file := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(file, []byte("name: courier\nadmin: {listen: \"127.0.0.1:0\"}\nlease: 5s\nwebhook: {allow: [127.0.0.0/8]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	courier := n.start("tidemark run --config " + file + " 2>" + file + ".log")
	var address string
	n.until("the daemon serves", func() bool {
		log, _ := os.ReadFile(file + ".log")
		if m := regexp.MustCompile(`"admin":"([^"]+)"`).FindSubmatch(log); m != nil {
			address = string(m[1])
		}
		return address != ""
	})
	prometheus := n.prometheus(address)
	fires := func(alerts ...string) {
		t.Helper()
		for _, alert := range alerts {
			began := time.Now()
			n.until("the alert "+alert, func() bool { return n.firing(prometheus)[alert] })
			t.Logf("%s fires after %s", alert, time.Since(began).Round(time.Second))
		}
	}
	ends := func(alerts ...string) {
		t.Helper()
		for _, alert := range alerts {
			n.until("the end of the alert "+alert, func() bool { return !n.firing(prometheus)[alert] })
		}
	}

	// All is well, also after some work.
	n.emit(1, 20)
	n.until("a scrape that has the work", func() bool { return n.ask(prometheus, `tidemark_deliveries_total{outcome="delivered"} == 20`) == 1 })
	if alerts := n.firing(prometheus); len(alerts) > 0 {
		t.Errorf("all is well, and %v", alerts)
	}

	idle := n.forgotten(emitted) // 20 seconds until it is a cause
	n.exec(`select tidemark.emit('shop', 'ordr')`)
	fires("TidemarkFindingWarning emit_unregistered emit")
	n.exec(`select tidemark.emit('shop', 'ordr')`) // a counter that rises
	fires("TidemarkUnregisteredEmits")

	status.Store(http.StatusServiceUnavailable)
	n.emit(21, 30)
	fires("TidemarkTargetDown hook", "TidemarkFinding target_down hook")
	status.Store(http.StatusBadRequest) // for good
	fires("TidemarkDeadLetters hook")
	ends("TidemarkTargetDown hook", "TidemarkFinding target_down hook")

	status.Store(http.StatusServiceUnavailable)
	n.emit(31, 40)
	fires("TidemarkTargetDown hook") // and ten deliveries wait
	n.dashboards(prometheus)

	transaction := fmt.Sprintf("TidemarkFindingWarning open_transaction pid %d", idle.PgConn().PID())
	fires(transaction)
	n.psql(fmt.Sprintf("select pg_terminate_backend(%d)", idle.PgConn().PID()))
	ends(transaction)

	if err := courier.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	fires("TidemarkDown")
}
