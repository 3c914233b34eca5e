package console

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// The history of a route is drawn by the server, with a gap where nothing is known, and says its sums.
func TestCharts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.exec(`delete from tidemark.route_minute; delete from tidemark.log_minute`)
	s.exec(`insert into tidemark.route_minute (route_id, at, sent, waiting)
		select r.id, date_bin('5 minutes', now(), 'epoch') - n * interval '5 minutes', n * 10, n from tidemark.outbound_route r, unnest('{1,2,4}'::int[]) n where r.route_code = 'hook'`)
	_, page := s.get("viewer", "/routes/hook")
	for _, want := range []string{
		`aria-label="Events in 5 minutes: Sent 70 in all, at most 40"`,
		`L282 100L283 0L284 100L285 50L286 75"`, // 40, none, 20, 10
		`aria-label="Waiting, at most: Waiting, at most 4"`,
		`class="waiting" d="M283 0M285 50L286 75"`, // not known between
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	// Where maintain has not run, nothing is known of what was emitted.
	if _, page := s.get("viewer", "/"); !strings.Contains(page, "Events a minute: Sent 70 in all") || strings.Contains(page, "Emitted") {
		t.Error("the overview has not the sum of all routes")
	}
	s.exec(`update tidemark.route_minute set at = date_bin('1 hour', now(), 'epoch') - interval '30 hours', sent = 7 where sent = 10`)
	s.exec(`delete from tidemark.route_minute where sent <> 7`)
	if _, page := s.get("viewer", "/routes/hook?hours=168"); !strings.Contains(page, "Events an hour: Sent 7 in all") || strings.Contains(page, `href="?hours=168"`) {
		t.Error("the history of 7 days is not shown")
	}
}

// A browser with JavaScript shows the values under the pointer, by the strict policy that all pages have; one without shows the
// lines of the server.
func TestChartsInABrowser(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := newSite(t)
	s.populate()
	must(ctx, t, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(s.url+"/"), chromedp.WaitReady(chromedp.CSS(".plot canvas")))
	const at = `document.querySelector(".at").textContent`
	run(ctx, t, chromedp.Evaluate[bool](`document.querySelector(".u-over").scrollIntoView({block: "center"}), true`))
	box := run(ctx, t, chromedp.Evaluate[[]float64](`(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector(".u-over").getBoundingClientRect())`))
	must(ctx, t, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box[0], box[1]))
	if text := run(ctx, t, chromedp.Poll[string](at)); !strings.Contains(text, "· Emitted 90") {
		t.Errorf("under the pointer is %s", text)
	}
	if n := run(ctx, t, chromedp.Evaluate[int](`document.querySelectorAll(".plot svg").length`)); n != 0 {
		t.Errorf("%d charts are drawn twice", n)
	}
	call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	must(ctx, t, chromedp.Navigate(s.url+"/"), chromedp.WaitVisible(chromedp.CSS(".plot svg")))
}
