package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// PostgreSQL has infinite times, and years before 1 and after 9999, which JSON and RFC 3339 cannot write. These bounds are a
// day inside the years 1 to 9999, so that they hold in every time zone. tidemark.event_check and tidemark.source_query have
// the same bounds.
var (
	firstTime = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// finiteTime returns t, or the nearest time that can be written.
func finiteTime(t time.Time) time.Time {
	switch {
	case t.Before(firstTime):
		return firstTime
	case t.After(lastTime):
		return lastTime
	}
	return t
}

// finiteTargets wraps the targets of a Scan, so that each *time.Time and **time.Time gets finiteTime of the stored value.
func finiteTargets(targets []any) []any {
	finite := make([]any, len(targets))
	for i, target := range targets {
		switch target := target.(type) {
		case *time.Time:
			finite[i] = &scanner{required: target}
		case **time.Time:
			finite[i] = &scanner{optional: target}
		default:
			finite[i] = target
		}
	}
	return finite
}

// scanner scans into whichever of its two targets is set.
type scanner struct {
	required *time.Time
	optional **time.Time
}

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (s *scanner) ScanTimestamptz(v pgtype.Timestamptz) error {
	t := finiteTime(v.Time)
	switch v.InfinityModifier {
	case pgtype.Infinity:
		t = lastTime
	case pgtype.NegativeInfinity:
		t = firstTime
	case pgtype.Finite:
	}
	switch {
	case v.Valid && s.required != nil:
		*s.required = t
	case v.Valid:
		*s.optional = &t
	case s.required != nil:
		return errors.New("cannot scan null into *time.Time")
	default:
		*s.optional = nil
	}
	return nil
}

// Instant is a time in a JSON document of the database, finite.
type Instant time.Time

// UnmarshalJSON implements json.Unmarshaler.
func (i *Instant) UnmarshalJSON(text []byte) error {
	var t time.Time
	if err := json.Unmarshal(text, &t); err != nil {
		t = lastTime // infinity, or a year of five digits
		if bytes.Contains(text, []byte("-infinity")) || bytes.Contains(text, []byte("BC")) {
			t = firstTime
		}
	}
	*i = Instant(finiteTime(t))
	return nil
}
