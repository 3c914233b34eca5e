package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/internal/docpage"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// docs/events.md has the columns of the log, and the types of events that Tidemark emits.
func TestEventsPage(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "events_page")
	for name, query := range map[string]string{
		"columns": `select E'| column | type | meaning |\n|---|---|---|\n' || string_agg(format('| %s | %s%s | %s |', '` + "`" + `' || a.attname || '` + "`" + `',
				replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz'),
				case when not a.attnotnull then ', or null' end,
				regexp_replace(col_description(a.attrelid, a.attnum), ' Source: S\d.*$', '')), E'\n' order by a.attnum)
			from pg_attribute a where a.attrelid = 'tidemark.outbox'::regclass and a.attnum > 0 and not a.attisdropped`,
		"types": `select E'| type | enabled | meaning |\n|---|---|---|\n' || string_agg(format('| %s | %s | %s |', '` + "`" + `' || domain || '/' || type || '` + "`" + `',
				case when enabled then 'yes' else 'no' end, regexp_replace(description, ' Source: S\d.*$', '')), E'\n' order by type)
			from tidemark.event_type where domain = 'system'`,
	} {
		docpage.Part(t, "../../docs/events.md", name, "go test ./sql/test -run TestEventsPage -update", one[string](s, query)+"\n", *update)
	}
}
