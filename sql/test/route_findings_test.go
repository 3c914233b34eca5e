package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A finding of a route is closed with the change of the route that makes it untrue, and a worker opens none of a route that
// sends nothing.
func TestFindingsEndWithTheRoute(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.exec(`select tidemark.route_set('other', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true},
		"enabled": true, "dry_run": false}')`)
	findings := func(want ...string) {
		t.Helper()
		w.wantRows(`select subject || ' ' || kind from tidemark.finding where closed_at is null order by 1`, want...)
	}
	report := `select tidemark.worker_finding('default', k, r, 'x') from unnest('{target_down,route_misconfigured}'::text[]) k, unnest('{app,other,none}'::text[]) r`

	w.exec(report)
	findings("app route_misconfigured", "app target_down", "other route_misconfigured", "other target_down")
	w.exec(`select tidemark.route_set('app', '{"target_ref": "public.other"}')`)
	findings("app route_misconfigured", "app target_down", "other route_misconfigured", "other target_down")
	w.exec(`select tidemark.route_set('app', '{"enabled": false}'), tidemark.route_set('other', '{"dry_run": true}')`)
	findings()
	w.exec(report) // of a worker that has not seen the change yet
	findings()

	w.exec(`select tidemark.route_set('app', '{"enabled": true}')`)
	epoch := one[int64](w, `select epoch from tidemark.claim('default', 'test', interval '1 minute')`)
	w.exec(`select tidemark.worker_finding('default', 'target_down', 'app', 'x', $1)`, epoch)
	w.exec(`select tidemark.route_gone('default', $1, (select id from tidemark.outbound_route where route_code = 'app'), 'http_410')`, epoch)
	findings("app route_gone")
	w.exec(`select tidemark.route_set('app', '{"dry_run": true}')`)
	findings("app route_gone")
	w.exec(`select tidemark.route_set('app', '{"enabled": true}')`)
	findings()

	// A pause closes what a target that gets nothing cannot have; that the route cannot be opened remains.
	w.exec(`select tidemark.route_set('app', '{"dry_run": false}')`)
	w.exec(`select tidemark.worker_finding('default', k, 'app', 'x') from unnest('{target_down,credentials_refused,two_copies,route_misconfigured}'::text[]) k`)
	findings("app credentials_refused", "app route_misconfigured", "app target_down", "app two_copies")
	w.exec(`select tidemark.route_pause('app', 'it is mended')`)
	findings("app route_misconfigured")
	w.exec(report) // of a delivery that was under way
	findings("app route_misconfigured")
	w.exec(`select tidemark.route_resume('app', 'it is mended')`)
	w.exec(report)
	findings("app route_misconfigured", "app target_down")
	w.exec(`select tidemark.route_set('app', '{"dry_run": true}')`)
	findings()

	// An operator's open transaction on the route holds up no worker.
	w.exec(`select tidemark.route_set('other', '{"dry_run": false}')`)
	operator := open(t, db, "operator")
	operator.begin()
	operator.exec(`update tidemark.outbound_route set timeout = '7 s' where route_code = 'other'`)
	w.refused("55P03", "could not obtain lock", `select tidemark.worker_finding('default', 'target_down', 'other', 'x')`)
	operator.commit()
	w.exec(`select tidemark.worker_finding('default', 'target_down', 'other', 'x')`)
	operator.begin()
	operator.exec(`select tidemark.route_set('other', '{"dry_run": true}')`)
	w.refused("55P03", "could not obtain lock", `select tidemark.worker_finding('default', 'target_down', 'other', null)`)
	operator.exec(`rollback; begin; select tidemark.finding_ack(id, 'seen') from tidemark.finding where kind = 'target_down' and closed_at is null`)
	w.refused("55P03", "could not obtain lock", `select tidemark.worker_finding('default', 'target_down', 'other', null)`)
	operator.commit()
	w.exec(report)
	w.exec(`delete from tidemark.decision; delete from tidemark.outbound_route where route_code = 'other'`)
	findings()
}
