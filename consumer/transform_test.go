package consumer_test

import (
	"fmt"
	"testing"
)

// A handler gets what the route's transform and columns make of the payload, and no event that it drops. One at which it fails is
// tried again by the route's retry policy, with the function as it is then; those behind it of its key wait, and no others.
func TestHandlerGetsTheTransformed(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 4} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			t.Parallel()
			p := prepared(t, lasting)
			shape := func(odd string) {
				p.exec(`create or replace function shape(p jsonb) returns jsonb language plpgsql as $$
					begin
						case p ->> 'n'
							when '2' then return null;
							when '3' then return ` + odd + `;
							else return jsonb_build_object('n', 'x' || (p ->> 'n'), 'secret', 'plugh');
						end case;
					end $$`)
			}
			shape(`to_jsonb(1 / 0)`)
			p.exec(`select tidemark.route_set('billing.shop.all', '{"transform": "public.shape", "columns": ["n"], "ordering": "key"}')`)
			p.concurrently(concurrency, note)
			p.emitAt("a", "b", "c", "c", "b", "")
			p.eventually(effects, "x1 x5 x6")
			p.eventually(`select (error_count > 2)::text || ' ' || last_error from tidemark.pending where seq = 3`, "true transform_failed: public.shape: division by zero (22012)")
			p.eventually(`select next_attempt_at::text from tidemark.pending where seq = 4`, "infinity")
			shape(`'{"n": "mended"}'`)
			p.eventually(`select n from effect order by ctid offset 3`, "mended", "x4")
			p.eventually(`select concat_ws(' ', seq, outcome, reason) from tidemark.route_attempt where outcome not in ('sent', 'pending')`, "2 skipped transform")
			p.eventually(`select count(*)::text from tidemark.handled`, "0")
			p.eventually(`select "check" || detail from tidemark.verify() where status = 'fail'`)
		})
	}
}
