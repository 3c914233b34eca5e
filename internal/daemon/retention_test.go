package daemon_test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// AD3: a daemon erases what is past the retention of its domain, more than one call of maintain takes.
func TestPayloadRetentionByTheDaemon(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	execSQL(t, db, `select tidemark.type_set('shop', 'order'), tidemark.type_set('other', 'order'), tidemark.domain_set('shop', '{"payload_retention": "1 day"}')`)
	execSQL(t, db, `select tidemark.emit(case n % 10 when 0 then 'other' else 'shop' end, 'order', jsonb_build_object('n', n)) from generate_series(1, 15000) n`)
	execSQL(t, db, `with old as (select set_config('session_replication_role', 'replica', true) offset 0)
		update tidemark.outbox set created_at = clock_timestamp() - interval '2 days' from old`)
	run(t, settings(db))
	eventually(t, "payloads are erased", func() bool {
		return query(t, db, `select concat_ws(' ', domain, payload ? 'erased', count(*)) from tidemark.outbox group by domain, payload ? 'erased' order by 1`) == "other f 1500; shop t 13500"
	})
	if got := query(t, db, `select concat_ws(' ', domain, passed_seq, events) from tidemark.payload_retention`); got != "shop 15000 13500" {
		t.Error(got)
	}
}
