package packs

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// An installation from before the gate that delivers goes on delivering, and is told so; one that does not gets the gate closed.
func TestIUCoreUpdateStopsNoDeliveries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ route, gate string }{
		"live":            {`update tidemark.outbound_route set enabled = true, dry_run = false where route_code = 'iu_split'`, "true"},
		"live for all":    {`select tidemark.route_set('all', '{"domain": "*", "target_kind": "notify", "target_ref": "all", "enabled": true, "dry_run": false}')`, "true"},
		"in dry run":      {`update tidemark.outbound_route set enabled = true where domain = 'iu'`, "false"},
		"another domain":  {`select tidemark.domain_set('shop'), tidemark.route_set('shop', '{"domain": "shop", "target_kind": "notify", "target_ref": "shop", "enabled": true, "dry_run": false}')`, "false"},
		"off, though set": {`update tidemark.outbound_route set dry_run = false where route_code = 'iu_split'`, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := tidemarktest.NewDB(t)
			installIUCore(t, test)
			for _, sql := range []string{
				`delete from tidemark.setting where key = 'domain.iu.enabled'`,
				`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.iu_outbound_default.enabled', true)`,
				c.route,
			} {
				if _, err := test.Pool.Exec(t.Context(), sql); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
			installIUCore(t, test)
			wantLines(t, test, `select value from tidemark.setting where key = 'domain.iu.enabled'`, c.gate)
			if name == "live" {
				if _, err := test.Pool.Exec(t.Context(), `select tidemark.emit('iu', 'IU_SPLIT', '{"unit_id": "u", "part_ids": ["a", "b"]}')`); err != nil {
					t.Fatal(err)
				}
				wantLines(t, test, `select concat_ws(' ', r ->> 'status', r ->> 'events') from tidemark.route_worker_run('iu_outbound_default') r`, "ran 1")
				wantLines(t, test, `select concat_ws(' ', route_code, outcome) from tidemark.route_attempt order by 1`, "iu_events disabled", "iu_split sent")
			}
			// What was set stays.
			installIUCore(t, test)
			wantLines(t, test, `select value from tidemark.setting where key = 'domain.iu.enabled'`, c.gate)
		})
	}
}

// With a route for all domains, a first install opens nothing.
func TestIUCoreFirstInstallIsClosed(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	if _, err := test.Pool.Exec(t.Context(), `select tidemark.stage_set('live', 'test'),
		tidemark.route_set('all', '{"domain": "*", "target_kind": "notify", "target_ref": "all", "enabled": true, "dry_run": false}')`); err != nil {
		t.Fatal(err)
	}
	installIUCore(t, test)
	wantLines(t, test, `select value from tidemark.setting where key = 'domain.iu.enabled'`, "false")
}
