package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A filter sees enums as texts. The doctor warns where that is not what the enum's own operators do.
func TestDoctorWarnsOfEnumsInFilters(t *testing.T) {
	t.Parallel()
	s := tailing{open(t, tidemarktest.NewDB(t), "doctor")}
	s.exec(`create type mood as enum ('sad', 'ok', 'glad'); create domain feeling as mood;
		create table births (id bigint generated always as identity primary key, kind text, mood mood, "Mood 2" feeling)`)
	const spelling = "is compared by the spelling of its labels, not by their order"
	for filter, want := range map[string]string{
		`mood = 'sad'`:                                "",
		`mood <> 'sad' and id > 3`:                    "",
		`mood in ('sad', 'ok') and kind < 'mood > x'`: "",
		`"Mood 2" != 'ok' or kind = 'nothing'`:        "",
		`kind = 'mood' and kind > 'a'`:                "",
		`mood > 'sad'`:                                "the enum mood " + spelling,
		`MOOD >= 'ok'`:                                "the enum mood " + spelling,
		`'sad' < mood`:                                "the enum mood " + spelling,
		`mood between 'sad' and 'ok'`:                 "the enum mood " + spelling,
		`"Mood 2" not between 'sad' and 'ok'`:         `the enum "Mood 2" ` + spelling,
		`mood = 'sda'`:                                "the enum mood has no label 'sda'",
		`mood not in ('sad', 'Ok')`:                   "the enum mood has no label 'Ok'",
	} {
		said := "ok " + filter
		if want != "" {
			said = "warn " + want + ": " + filter
		}
		s.want(`select c.status, c.detail from tidemark.source_check(jsonb_populate_record(null::tidemark.source, jsonb_build_object('schema_name', 'public',
			'table_name', 'births', 'id_column', 'id', 'safety', 'sequence', 'filter', $q$`+filter+`$q$))) c where c."check" = 'filter'`, said)
	}
}
