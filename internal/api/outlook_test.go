package api

import (
	"fmt"
	"slices"
	"testing"
)

// The outlook of a gate is of the workers that it governs, however many others there are, and of a domain's gate of the routes that may
// claim its events.
func TestOutlookOfGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.type_set('book', 'sold'), tidemark.domain_set('farm', '{}')`)
	w.exec(`select tidemark.worker_set('a' || i, '{"domains": ["farm"]}') from generate_series(1, 25) i`)
	w.exec(`select tidemark.worker_set('z', '{"domains": ["book"]}')`)
	w.exec(`select tidemark.route_set(r || '_' || replace(d, '*', 'all'), jsonb_build_object('domain', d, 'worker', r, 'target_kind', 'notify', 'target_ref', 'x'))
		from unnest('{default, z}'::text[]) r, unnest('{shop, book, *}'::text[]) d where r = 'default' or d = 'book'`)
	w.exec(`select tidemark.gate_set('domain.book.enabled', false)`)
	w.exec(`select tidemark.emit('shop', 'order'), tidemark.emit('book', 'sold')`)
	governed := func(gate string) (all []string) {
		for _, g := range gets[[]GateOutlook](w, vera, "GET", "/outlook?gate="+gate, "") {
			for _, o := range g.Outlook[1:] {
				all = append(all, fmt.Sprint(g.Worker, " ", *o.RouteCode))
			}
		}
		return all
	}
	if got := governed("domain.book.enabled"); !slices.Equal(got, []string{"default default_all", "default default_book", "z z_book"}) {
		t.Errorf("%q", got)
	}
	if got := governed("worker.z.enabled"); !slices.Equal(got, []string{"z z_book"}) {
		t.Errorf("%q", got)
	}
}
