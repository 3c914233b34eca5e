package incidents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const (
	shopsCalm    = 2 * time.Minute // of work before the incidents
	shopsTrouble = 2 * time.Minute
	shopsTick    = 200 * time.Millisecond
)

// TestDashboardPictures makes the pictures of the dashboards in docs/images, with incidents on them: a webhook that answers 503, a daemon
// that was killed, a transaction that is left open, and events that an SQL target refuses. All that they show is measured.
func TestDashboardPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("it writes to docs, after four minutes of work: give -pictures")
	}
	server := testserver.New(t, devpg.Options{})
	n := begin(t, tidemarktest.NewDBAt(t, server.URL("postgres")))
	n.exec(`create or replace function public.take(event jsonb) returns void language plpgsql as $$
		begin
			if event ->> 'key' like 'poison%' then raise exception 'the customer has no e-mail address' using errcode = '23502'; end if;
		end $$`)
	bills, warehouse := newReceiver(t), newReceiver(t)
	n.route("mailer", "sql", "public.take", `, "retry_policy": {"max_attempts": 1}`)
	n.route("billing", "webhook", bills.URL, billing)
	n.route("warehouse", "webhook", warehouse.URL, billing)
	n.source("sequence")
	d := n.deskOf("payments", "ledger")
	n.url = n.login()
	_, courier := n.servesAs("courier", billingSecret+d.config)
	porter, other := n.servesAs("porter", "workers: [greeter]\n"+billingSecret)
	w := newTower(t, courier)
	w.scrapes(courier, other)
	d.send(40, d.shut, "shop", "works")
	n.until("both daemons are scraped", func() bool { return w.ask(`tidemark_armed == 1`) == 2 })

	began := time.Now()
	tick := time.NewTicker(shopsTick)
	defer tick.Stop()
	works := func(long time.Duration, poison bool) {
		for i, until := 0, time.Now().Add(long); time.Now().Before(until); i++ {
			n.exec(fmt.Sprintf(`select tidemark.emit('shop', 'order.paid', key => 'order ' || i) from generate_series(1, %d) i;
				insert into public.births (name) select 'n' from generate_series(1, %d)`, 3+i%3, i%2))
			d.send(1, d.open, "shop", "works")
			if poison && i%20 == 0 {
				n.exec(`select tidemark.emit('shop', 'order.paid', key => 'poison ' || clock_timestamp())`)
			}
			<-tick.C
		}
	}
	works(shopsCalm, false)
	bills.answers(http.StatusServiceUnavailable)
	n.forgotten(emitted)
	n.exec(`select tidemark.emit('shop', 'order.piad')`)
	if err := porter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	works(shopsTrouble, true)

	files, err := filepath.Glob("../../deploy/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	if err := chromium.start(); err != nil {
		t.Fatalf("Chromium: %v: scripts/tools.sh installs it", err)
	}
	tab, cancel := chromedp.NewContext(chromium.ctx)
	t.Cleanup(cancel)
	ended := time.Now()
	for _, file := range files {
		page := httptest.NewServer(w.drawn(file, began, ended))
		t.Cleanup(page.Close)
		n.do(tab, chromedp.EmulateViewport(1400, 800), chromedp.Navigate(page.URL))
		if problem := eval[string](tab, n, `document.body.dataset.drawn > 0 ? "" : document.body.dataset.problem ?? "nothing is drawn"`); problem != "" {
			t.Fatalf("%s: %s", file, problem)
		}
		shot, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		name := "dashboard-" + strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "tidemark-"), ".json") + ".png"
		if err := os.WriteFile(filepath.Join(*pictures, name), fewColors(t, shot, tallestBoard), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tallestBoard is higher than our dashboards.
const tallestBoard = 4000

// drawn is the page of a dashboard with what Prometheus answers for that time.
func (w *tower) drawn(file string, from, to time.Time) http.HandlerFunc {
	w.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Targets []struct {
				Expr    string
				Instant bool
			}
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		w.t.Fatal(err)
	}
	const every = 2 // seconds
	begin, end := from.Unix(), to.Unix()
	var answers [][]json.RawMessage
	for _, p := range board.Panels {
		var asked []json.RawMessage
		for _, q := range p.Targets {
			expr := url.QueryEscape(strings.ReplaceAll(q.Expr, "$__rate_interval", "15s"))
			path := fmt.Sprintf("/api/v1/query_range?query=%s&start=%d&end=%d&step=%d", expr, begin, end, every)
			if q.Instant {
				path = fmt.Sprintf("/api/v1/query?query=%s&time=%d", expr, end)
			}
			var got struct {
				Status, Error string
				Data          struct{ Result json.RawMessage }
			}
			if w.get(path, &got); got.Status != "success" {
				w.t.Fatalf("%s: %s", q.Expr, got.Error)
			}
			asked = append(asked, got.Data.Result)
		}
		answers = append(answers, asked)
	}
	known, err := json.Marshal(answers)
	if err != nil {
		w.t.Fatal(err)
	}
	var page bytes.Buffer
	page.WriteString("<!doctype html><meta charset=utf-8><style>")
	part := func(file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		page.Write(text)
	}
	part("../../console/static/uPlot.min.css")
	part("testdata/dashboard.css")
	page.WriteString("</style><body><script>onerror = (problem) => { document.body.dataset.problem = problem; }</script><script>")
	part("../../console/static/uPlot.min.js")
	fmt.Fprintf(&page, "</script><script>const from = %d, to = %d, every = %d, answers = %s, board = %s;\n", begin, end, every, known, text)
	part("testdata/dashboard.js")
	page.WriteString("</script>")
	return func(to http.ResponseWriter, _ *http.Request) {
		to.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = to.Write(page.Bytes())
	}
}
