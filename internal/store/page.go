package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/finite"
)

// Event is a row of the log. Texts that are null there are empty.
type Event struct {
	Seq            int64
	ID             string
	CreatedAt      time.Time
	OccurredAt     time.Time
	Lane           string
	Severity       string
	Domain         string
	Type           string
	Stream         string
	Key            string
	SubjectTable   string
	SubjectRef     string
	IdempotencyKey string
	Trace          string
	Actor          string
	Payload        json.RawMessage
}

// Item is an event that is to be delivered outside the database, by each of its routes.
type Item struct {
	Event
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

// DeliveryRoute is a row of tidemark.outbound_route.
type DeliveryRoute struct {
	ID          int32           `json:"id"`
	Code        string          `json:"route_code"`
	TargetKind  string          `json:"target_kind"`
	TargetRef   string          `json:"target_ref"`
	Ordering    string          `json:"ordering"`
	RetryPolicy json.RawMessage `json:"retry_policy"`
	Timeout     float64         `json:"timeout_seconds"`
	Concurrency int             `json:"concurrency"`
	Options     json.RawMessage `json:"options"`
}

// Page is what was read at once.
type Page struct {
	Gate   string // the gate that is closed; then there is nothing else
	Events int    // how many of the log it goes past
	Open   bool   // numbers up to the highest one taken have not shown up yet
	Items  []Item
	Routes []DeliveryRoute // those of the items, if they are not as known
	// RoutesVersion names the state of the items' routes, for the next Read.
	RoutesVersion string
	// Missing is how many pending events were given up, since they are gone from the log.
	Missing int64
	// Inside is how long settling it may take, where that delivers inside the database; 0: it does not.
	Inside time.Duration
	// Shut are the domains whose gate is closed: their events wait.
	Shut []string

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
	// Rooms says how many pending items a route takes; routes that are not in it take 100.
	Rooms map[int32]int
	// NothingPending asks for fresh events only.
	NothingPending bool
	// Bytes of payload that the page may have, an event of each kind aside; 0: as the setting batch.max_bytes says.
	Bytes int64
	// Withhold leaves the payloads out; Payload gives them one by one.
	Withhold bool
}

const readPage = `select gate, events, open, place, batch, evidence, routes, routes_version, route_ids, attempt_no, error_count, fresh, replay,
	seq, event_id, created_at, occurred_at, lane::text, severity::text, domain, type, stream, key, subject_table, subject_ref,
	idempotency_key, trace, actor, payload, missing, inside, withheld, array_to_string(closed, ',')
from tidemark.pass_read($1, $2, $3, $4::text::tidemark.batch, $5, $6, $7, nullif($8::bigint, 0), not $9::boolean)`

// Read calls tidemark.pass_read. Where it returns items, all of them are durable.
func (c *Cursor) Read(ctx context.Context, ask Ask) (*Page, error) {
	var after *string
	if ask.After != nil {
		after = &ask.After.batch
	}
	var routes, rooms []int32 // null: nothing that is pending
	if !ask.NothingPending {
		routes, rooms = make([]int32, 0, len(ask.Rooms)), make([]int32, 0, len(ask.Rooms))
		for route, room := range ask.Rooms {
			routes, rooms = append(routes, route), append(rooms, int32(room)) //nolint:gosec // a room is small
		}
	}
	rows, err := c.db.Query(ctx, readPage, pgx.QueryResultFormats{pgx.BinaryFormatCode},
		c.worker, c.epoch, ask.Limit, after, ask.KnownRoutes, routes, rooms, ask.Bytes, ask.Withhold)
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
	return page, rows.Err()
}

// head reads the columns that only the first row has.
func head(raw [][]byte) (*Page, error) {
	page := &Page{Gate: string(raw[0]), Open: len(raw[2]) == 1 && raw[2][0] == 1, place: string(raw[3]), batch: string(raw[4]), evidence: string(raw[5]), RoutesVersion: string(raw[7])}
	if raw[1] != nil {
		page.Events = int(binary.BigEndian.Uint32(raw[1]))
	}
	if missing := raw[29]; missing != nil {
		page.Missing = int64(binary.BigEndian.Uint64(missing)) //nolint:gosec // it was signed
	}
	if seconds := raw[30]; seconds != nil {
		page.Inside = time.Duration(math.Float64frombits(binary.BigEndian.Uint64(seconds)) * float64(time.Second))
	}
	if names := raw[32]; len(names) > 0 {
		page.Shut = strings.Split(string(names), ",") // no name of a domain has a comma
	}
	if raw[6] != nil {
		if err := json.Unmarshal(raw[6][1:], &page.Routes); err != nil {
			return nil, fmt.Errorf("routes: %w", err)
		}
	}
	return page, nil
}

// item reads a row by hand: at full speed this is most of what a worker does.
func item(raw [][]byte) (Item, error) {
	e := raw[13:]
	id := e[1]
	withheld := e[18]
	if len(id) != 16 || len(e[0]) != 8 || len(e[15]) < 1 && len(withheld) != 8 {
		return Item{}, fmt.Errorf("event %x: not as tidemark.pass_read tells it", e[0])
	}
	it := Item{
		Event: Event{
			Seq: int64(binary.BigEndian.Uint64(e[0])), ID: uuid(id), CreatedAt: timestamp(e[2]), OccurredAt: timestamp(e[3]), //nolint:gosec // it was signed
			Lane: string(e[4]), Severity: string(e[5]), Domain: string(e[6]), Type: string(e[7]), Stream: string(e[8]),
			Key: string(e[9]), SubjectTable: string(e[10]), SubjectRef: string(e[11]), IdempotencyKey: string(e[12]),
			Trace: string(e[13]), Actor: string(e[14]),
		},
		Routes:  int4s(raw[8]),
		Attempt: int(binary.BigEndian.Uint32(raw[9])),
		Errors:  int(binary.BigEndian.Uint32(raw[10])),
		Fresh:   raw[11][0] == 1,
		Replay:  raw[12][0] == 1,
	}
	if withheld != nil {
		it.Withheld = int64(binary.BigEndian.Uint64(withheld)) //nolint:gosec // it was signed
	} else {
		it.Payload = slices.Clone(e[15][1:]) // behind the version of the format
	}
	return it, nil
}

// ErrGone means that an event is not in the log any more.
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

func uuid(raw []byte) string {
	var text [36]byte
	hex.Encode(text[0:8], raw[0:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:36], raw[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func timestamp(raw []byte) time.Time {
	micros := int64(binary.BigEndian.Uint64(raw)) //nolint:gosec // it was signed
	// Infinity is the greatest number: the sum must not overflow.
	return finite.Time(time.UnixMicro(postgresEpoch + min(micros, math.MaxInt64-postgresEpoch)).UTC())
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
