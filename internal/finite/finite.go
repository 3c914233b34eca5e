// Package finite limits times from the database to the range that JSON and RFC 3339 can write.
package finite

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// PostgreSQL has infinite times, and years before 1 and after 9999. These bounds are a day inside the years 1 to 9999, so
// that they hold in every time zone. tidemark.event_check and tidemark.source_query have the same bounds.
var (
	first = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	last  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// Time returns t, or the nearest time that can be written.
func Time(t time.Time) time.Time {
	switch {
	case t.Before(first):
		return first
	case t.After(last):
		return last
	}
	return t
}

// Targets wraps the targets of a Scan, so that each *time.Time and **time.Time gets Time of the stored value.
func Targets(targets []any) []any {
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
	t := Time(v.Time)
	switch v.InfinityModifier {
	case pgtype.Infinity:
		t = last
	case pgtype.NegativeInfinity:
		t = first
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
