package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
)

// Item is an event that is to be delivered outside the database, by each of its routes.
type Item struct {
	tidemark.Event
	Routes  []int32
	Attempt int  // the number that this attempt will have
	Errors  int  // attempts that failed
	Fresh   bool // of the batch; otherwise it was pending
	Replay  bool // an operator sends a dead letter again
	// Withheld is how many bytes the payload has where it was left out; 0: it was not.
	Withheld int64
}

// LiveFirst compares items by the order in which a route takes them: live events by
// number, then replays by number. A replay that fails holds up nothing.
func LiveFirst(a, b *Item) int {
	if a.Replay != b.Replay {
		if b.Replay {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Seq, b.Seq)
}

// Page is what was read at once.
type Page struct {
	Gate   string // the gate that is closed; then there is nothing else
	Events int    // how many of the log it goes past
	Open   bool   // numbers up to the highest one taken have not shown up yet
	Items  []Item
	Routes []Route // those of the items, if they are not as known
	// RoutesVersion names the state of the items' routes, for the next Read.
	RoutesVersion string
	// Missing is how many pending events were given up, since they are gone from the log.
	Missing int64
	// Inside is how long settling it may take, where that delivers inside the database; 0: it does not.
	Inside time.Duration
	// Shut are the domains whose gate is closed: their events wait.
	Shut []string
	// Settled: it left nothing to deliver, and was settled as it was read.
	Settled bool

	place    string // of the cursor, once this is settled
	batch    string
	evidence string
}

// Bytes is how much payload it holds.
func (p *Page) Bytes() (bytes int64) {
	for i := range p.Items {
		bytes += int64(len(p.Items[i].Payload))
	}
	return bytes
}

// Ask is what to read.
type Ask struct {
	Limit int   // events of the log, at most
	After *Page // read on from where this one will leave the cursor; nil: from the cursor
	// KnownRoutes is the RoutesVersion of the page before.
	KnownRoutes string
	// Capacity says how many pending items a route takes; routes that are not in it take 100.
	Capacity map[int32]int
	// NothingPending asks for fresh events only.
	NothingPending bool
	// Bytes of payload that the page may have, an event of each kind aside; 0: as the setting batch.max_bytes says.
	Bytes int64
	// Withhold leaves the payloads out; Payload gives them one by one.
	Withhold bool
	// Settle also settles the page, if it leaves nothing to deliver. As long as the answer is not known, the settle may have
	// been recorded or be recorded yet: a settle without a page gives its number up.
	Settle bool
}

const readPage = `select gate, events, open, place, batch, evidence, routes, routes_version, missing, inside, array_to_string(closed, ','), settled,
	route_ids, attempt_no, error_count, fresh, replay, withheld, ` + rawEvent + `
from tidemark.pass_read($1, $2, $3, $4::text::tidemark.batch, $5, $6, $7, nullif($8::bigint, 0), not $9::boolean, $10)`

// Read calls tidemark.pass_read. Where it returns items, all of them are durable.
func (c *Cursor) Read(ctx context.Context, ask Ask) (*Page, error) {
	var after *string
	if ask.After != nil {
		after = &ask.After.batch
	}
	var routes, capacity []int32 // null: nothing that is pending
	if !ask.NothingPending {
		routes, capacity = make([]int32, 0, len(ask.Capacity)), make([]int32, 0, len(ask.Capacity))
		for route, most := range ask.Capacity {
			routes, capacity = append(routes, route), append(capacity, int32(most)) //nolint:gosec // at most some thousands
		}
	}
	var settle *int64
	if ask.Settle {
		no := c.settles + 1
		settle = &no
	}
	rows, err := c.db.Query(ctx, readPage, pgx.QueryResultFormats{pgx.BinaryFormatCode},
		c.worker, c.epoch, ask.Limit, after, ask.KnownRoutes, routes, capacity, ask.Bytes, ask.Withhold, settle)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	page, err := head(rows.RawValues())
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		if page.Items == nil {
			page.Items = make([]Item, 0, max(page.Events, 1))
		}
		item, err := item(rows.RawValues())
		if err != nil {
			return nil, err
		}
		page.Items = append(page.Items, item)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if page.Settled {
		c.Settled(page)
	}
	return page, nil
}

// head reads the columns that only the first row has.
func head(raw [][]byte) (*Page, error) {
	page := &Page{
		Gate: string(raw[0]), Open: isTrue(raw[2]), RoutesVersion: string(raw[7]),
		place: string(raw[3]), batch: string(raw[4]), evidence: string(raw[5]),
	}
	if raw[1] != nil {
		page.Events = int(binary.BigEndian.Uint32(raw[1]))
	}
	if raw[6] != nil {
		if err := json.Unmarshal(raw[6][1:], &page.Routes); err != nil {
			return nil, fmt.Errorf("routes: %w", err)
		}
	}
	if missing := raw[8]; missing != nil {
		page.Missing = int64(binary.BigEndian.Uint64(missing)) //nolint:gosec // it was signed
	}
	if seconds := raw[9]; seconds != nil {
		page.Inside = time.Duration(math.Float64frombits(binary.BigEndian.Uint64(seconds)) * float64(time.Second))
	}
	if names := raw[10]; len(names) > 0 {
		page.Shut = strings.Split(string(names), ",") // no name of a domain has a comma
	}
	page.Settled = isTrue(raw[11])
	return page, nil
}

func isTrue(raw []byte) bool { return len(raw) == 1 && raw[0] == 1 }

// item reads the other columns, of a row that is an event.
func item(raw [][]byte) (Item, error) {
	withheld := raw[17]
	event, err := readEvent(raw[18:], withheld == nil)
	if err != nil {
		return Item{}, err
	}
	it := Item{
		Event:   event,
		Routes:  int4s(raw[12]),
		Attempt: int(binary.BigEndian.Uint32(raw[13])),
		Errors:  int(binary.BigEndian.Uint32(raw[14])),
		Fresh:   isTrue(raw[15]),
		Replay:  isTrue(raw[16]),
	}
	if withheld != nil {
		it.Withheld = int64(binary.BigEndian.Uint64(withheld)) //nolint:gosec // it was signed
	}
	return it, nil
}

// ErrGone means that an event is no longer in the log.
var ErrGone = errors.New("the event is gone from the log")

// Payload calls tidemark.pass_payload for an item that was read without it. ErrGone: it is not there any more.
func (c *Cursor) Payload(ctx context.Context, item *Item) error {
	var replayOn *int32
	if item.Replay {
		replayOn = &item.Routes[0]
	}
	var payload []byte
	err := c.db.QueryRow(ctx, `select tidemark.pass_payload($1, $2, $3, $4::text::uuid, $5)`, c.worker, c.epoch, item.Seq, item.ID, replayOn).Scan(&payload)
	if err != nil {
		return err
	}
	if payload == nil {
		return ErrGone
	}
	item.Payload, item.Withheld = payload, 0
	return nil
}

// int4s reads an array of one dimension without nulls.
func int4s(raw []byte) []int32 {
	if len(raw) < 20 {
		return nil
	}
	numbers := make([]int32, 0, (len(raw)-20)/8)
	for at := 20; at+8 <= len(raw); at += 8 {
		numbers = append(numbers, int32(binary.BigEndian.Uint32(raw[at+4:]))) //nolint:gosec // it was signed
	}
	return numbers
}
