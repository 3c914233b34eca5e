package test

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// What a writer has written, and what has become of its transaction.
type item struct {
	id     string // of the event or row
	number int64  // that it took; of the log also behind a captured row
	at     time.Time
	key    string // whose lock its writer held when it took the number; "": none
	state  state
	taken  int // how often a worker handled it
}

type state int

const (
	undecided state = iota // its transaction may commit still: it runs, or is prepared
	committed
	undone
)

// place is where a cursor is, as the database has it.
type place struct {
	number int64
	at     time.Time
	holes  [][2]int64 // from, to (exclusive)
	epoch  int64
	owner  string // of a lease that has not ended
	taken  []string
}

// A model says what a cursor may and must show. passed reports whether a cursor looks at the item no more.
type model struct {
	items   map[string]*item
	passed  func(*item, place) bool
	strict  bool // and nothing is handled before a lower number
	was     place
	rewound bool // in the step that is judged
}

// judge holds a cursor against what was written: "" or what is wrong.
func (m *model) judge(now place) string {
	last := map[string]int64{}
	for _, i := range m.items {
		i.taken = 0
	}
	for _, id := range now.taken {
		i := m.items[id]
		switch {
		case i == nil || i.state != committed:
			return fmt.Sprintf("%s was handled and is not committed", id)
		case i.taken > 0:
			return fmt.Sprintf("number %d was handled twice", i.number)
		case (i.key != "" || m.strict) && i.number < last[i.key]:
			return fmt.Sprintf("number %d of key %s was handled after %d", i.number, i.key, last[i.key])
		}
		i.taken++
		last[i.key] = i.number
		if m.strict {
			last[""] = i.number
		}
	}
	for _, i := range m.items {
		if i.state != undone && i.taken == 0 && m.passed(i, now) {
			return fmt.Sprintf("number %d is behind the cursor, in no hole, and %s", i.number, [...]string{"may commit still", "was never handled"}[i.state])
		}
	}
	switch {
	case m.rewound && now.epoch == m.was.epoch:
		return "a cursor was rewound, and its owner may settle still"
	case now.epoch < m.was.epoch || !m.rewound && (now.at.Before(m.was.at) || now.at.Equal(m.was.at) && now.number < m.was.number):
		return fmt.Sprintf("watermark %d %s, epoch %d have gone back from %d %s, %d",
			now.number, now.at, now.epoch, m.was.number, m.was.at, m.was.epoch)
	}
	m.was, m.rewound = now, false
	return ""
}

// due is what is committed and was not handled: what a read that begins now must show, if there is room.
func (m *model) due() []*item {
	var list []*item
	for _, i := range m.items {
		if i.state == committed && i.taken == 0 {
			list = append(list, i)
		}
	}
	return list
}

// behind is passed for cursors that go by numbers.
func behind(i *item, p place) bool {
	if i.number > p.number {
		return false
	}
	for _, h := range p.holes {
		if i.number >= h[0] && i.number < h[1] {
			return false
		}
	}
	return true
}

// before is passed for cursors that go by time: rows of one microsecond are told apart by their number.
func before(i *item, p place) bool {
	return i.at.Before(p.at) || i.at.Equal(p.at) && i.number <= p.number
}

// never is passed for cursors that come back for what is late.
func never(*item, place) bool { return false }

// spans reads an int8multirange.
func spans(text string) [][2]int64 {
	var list [][2]int64
	for span := range strings.SplitSeq(strings.Trim(text, "{}"), "),") {
		from, to, found := strings.Cut(strings.Trim(span, "[)"), ",")
		if !found {
			continue
		}
		var s [2]int64
		s[0], _ = strconv.ParseInt(from, 10, 64)
		s[1], _ = strconv.ParseInt(to, 10, 64)
		list = append(list, s)
	}
	return list
}
