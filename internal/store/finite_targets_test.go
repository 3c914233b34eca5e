package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Any time that PostgreSQL can store is scanned as a time that JSON can write in any time zone.
func TestFiniteTargets(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	const first, last = "0001-01-02T00:00:00Z", "9999-12-31T00:00:00Z"
	for stored, want := range map[string]string{
		"infinity": last, "-infinity": first, "294276-12-31 23:59:59.999999+00": last, "4713-01-01 00:00:00+00 BC": first,
		"9999-12-31 23:59:59+00": last, "0001-01-01 00:00:00+00": first, "2026-01-02 03:04:05.678901+00": "2026-01-02T03:04:05.678901Z",
	} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} { // binary, text
			var required time.Time
			var optional, null *time.Time
			var text string
			err := db.Pool.QueryRow(t.Context(), `select $1::text::timestamptz, $1::text::timestamptz, null::timestamptz, 'x'`, mode, stored).
				Scan(finiteTargets([]any{&required, &optional, &null, &text})...)
			if err != nil || optional == nil || null != nil || text != "x" {
				t.Errorf("%s: %v %v %q %v", stored, optional, null, text, err)
				continue
			}
			for _, got := range []time.Time{required, *optional, required.In(time.FixedZone("east", 14*3600)), required.In(time.FixedZone("west", -12*3600))} {
				if written, err := json.Marshal(got.UTC()); string(written) != `"`+want+`"` || err != nil {
					t.Errorf("%s: got %s, %v, want %s", stored, written, err, want)
				}
				if _, err := json.Marshal(got); err != nil {
					t.Errorf("%s: %v", stored, err)
				}
			}
		}
	}
	var required time.Time
	if err := db.Pool.QueryRow(t.Context(), `select null::timestamptz`).Scan(finiteTargets([]any{&required})...); err == nil {
		t.Error("null was scanned into a time")
	}
}

// The summary of a pass is read, whatever time its watermark is.
func TestInstant(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	const first, last = "0001-01-02T00:00:00Z", "9999-12-31T00:00:00Z"
	for stored, want := range map[string]string{
		"infinity": last, "-infinity": first, "20000-01-01 00:00:00+00": last, "4000-01-01 00:00:00+00 BC": first,
		"9999-12-31 23:59:59+00": last, "2026-01-02 03:04:05.678901+00": "2026-01-02T03:04:05.678901Z",
	} {
		var summary []byte
		if err := db.Pool.QueryRow(t.Context(), `select jsonb_build_object('watermark_ts', $1::text::timestamptz)`, stored).Scan(&summary); err != nil {
			t.Fatal(err)
		}
		pass, err := readPass(summary, nil)
		if err != nil || time.Time(*pass.WatermarkTS).UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s: got %v, %v", stored, pass.WatermarkTS, err)
		}
	}
	if pass, err := readPass([]byte(`{"watermark_ts": null}`), nil); err != nil || pass.WatermarkTS != nil {
		t.Errorf("null: got %v, %v", pass.WatermarkTS, err)
	}
}
