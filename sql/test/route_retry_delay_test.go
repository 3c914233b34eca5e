package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What failed together does not come back together: the backoff is spread on both sides of its value, and no further.
func TestRetryDelayIsSpread(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "spread")
	s.exec(`create function spread(policy jsonb, failed int) returns text language sql as $$
		select concat_ws(' ', count(distinct d) > 150, min(d) >= 5 and min(d) < 8, max(d) <= 15 and max(d) > 12)
		from (select extract(epoch from tidemark.retry_delay(policy, failed)) as d from generate_series(1, 200)) r $$`)
	s.wantRows(`select spread('{"base_seconds": 10, "jitter": 0.5}', 1)`, "t t t")
	s.wantRows(`select spread('{"base_seconds": 2.5, "jitter": 0.5}', 3)`, "t t t") // doubled twice
	s.wantRows(`select spread('{"base_seconds": 1, "max_seconds": 10, "jitter": 0.5}', 9)`, "t t t")
	s.wantRows(`select concat_ws(' ', count(distinct d) > 150, min(d) >= 0.8, max(d) <= 1.2)
		from (select extract(epoch from tidemark.retry_delay(null, 1)) as d from generate_series(1, 200)) r`, "t t t")
	s.wantRows(`select distinct extract(epoch from tidemark.retry_delay('{"base_seconds": 10, "jitter": 0}', 1))::float8::text from generate_series(1, 20)`, "10")
}
