package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// compare is a look at a broker at which these marks were heard. It returns the mark to leave, or an empty text.
func (s session) compare(heard string) (mark string) {
	s.t.Helper()
	return one[string](s, `select coalesce(max(mark), '') from tidemark.copies_compare('kafka main', '`+heard+`')`)
}

// LI8, incident 14: marks of another copy are a finding once they have come for longer than any that this database could have lost.
func TestCopiesCompare(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "copies")
	const findings = `select concat_ws(' ', f.kind, f.subject, f.severity, f.count, f.closed_at is null) from tidemark.finding f order by f.id`
	later := func(by string) {
		s.exec(`update tidemark.copy_mark set at = at - interval '` + by + `'`)
		s.exec(`update tidemark.finding set last_seen_at = last_seen_at - interval '` + by + `'`)
	}

	// Nothing leaves a database that is not armed.
	if mark := s.compare(`{}`); mark != "" {
		t.Errorf("in dry run, the mark %s", mark)
	}
	s.exec(`select tidemark.stage_set('live', 'test')`)
	s.wantRows(`select (place ~ '^tidemark-copies-\d+-\d+$')::text from tidemark.copies_compare('nats bus', '{}')`, "true")

	// Several daemons of one database hear each other.
	first, second := s.compare(`{}`), s.compare(`{}`)
	for range 3 {
		later("10 seconds")
		first, second = s.compare("{"+second+"}"), s.compare("{"+first+"}")
	}
	s.wantRows(findings)
	s.wantRows(`select count(*)::text from tidemark.copy_mark where not ours`, "0")

	// A failover has lost the notes of the last moment: their marks are heard once more, and then never again.
	s.exec(`delete from tidemark.copy_mark m where m.mark in ('` + first + `', '` + second + `')`)
	s.compare("{" + first + "}")
	later("13 seconds") // a look may be 6 seconds after the last one, and take 4; the mark took 4
	s.compare("{" + second + "}")
	later("8 seconds")
	s.compare("{" + first + "}") // an old one again
	s.wantRows(findings)
	// Another failover, later on.
	later("50 seconds")
	s.compare("{lost}")
	s.wantRows(findings)
	later("1 minute")

	// Another copy lives.
	s.compare("{b1}")
	later("5 seconds")
	s.compare("{b2}")
	s.wantRows(findings)
	later("5 seconds")
	s.compare("{b3}")
	s.wantRows(findings)
	later("5 seconds")
	s.compare("{b4}")
	s.wantRows(findings, "two_copies kafka main high 1 t")
	s.wantRows(`select status || ' ' || cause || ' ' || cli[1] from tidemark.cause where subject = 'kafka main'`,
		`bad two_copies tidemark stage dry_run --reason 'another copy delivers'`)
	later("10 seconds")
	s.compare("{b5}")
	later("20 seconds")
	s.exec(`select tidemark.findings_over()`)
	s.wantRows(findings, "two_copies kafka main high 2 t")
	later("6 seconds")
	s.exec(`select tidemark.findings_over()`)
	s.wantRows(findings, "two_copies kafka main high 2 f")

	// The notes are kept for an hour.
	later("1 hour")
	s.compare(`{}`)
	s.wantRows(`select count(*)::text from tidemark.copy_mark`, "1")
}
