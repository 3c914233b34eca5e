package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

// GateShare is the gate of a page where the shard is to be given to another instance, as tidemark.log_gate says it.
const GateShare = "its share of the shards"

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
	leaving  []departures
	lowest   int64 // no page behind this one has an event below
}

// Bytes is how much payload it holds.
func (p *Page) Bytes() (bytes int64) {
	for i := range p.Items {
		bytes += int64(len(p.Items[i].Payload))
	}
	return bytes
}

// Then returns both pages as one, to be settled together: next was read behind p. It has no items.
func (p *Page) Then(next *Page) *Page {
	_, events, late, _ := counts(p.batch)
	watermark, more, later, rest := counts(next.batch)
	joined := &Page{
		Events: p.Events + next.Events, place: next.place, lowest: next.lowest, evidence: next.evidence,
		batch: fmt.Sprintf("%s,%d,%d,%s", watermark, events+more, late+later, rest),
	}
	switch {
	case next.evidence == "{}":
		joined.evidence = p.evidence
	case p.evidence != "{}":
		joined.evidence = strings.TrimSuffix(p.evidence, "}") + "," + strings.TrimPrefix(next.evidence, "{")
	}
	return joined
}

// counts takes the text of a tidemark.batch apart: how many events it has, and how many of them came late.
func counts(batch string) (watermark string, events, late int, rest string) {
	watermark, rest, _ = strings.Cut(batch, ",")
	one, rest, _ := strings.Cut(rest, ",")
	two, rest, _ := strings.Cut(rest, ",")
	events, _ = strconv.Atoi(one)
	late, _ = strconv.Atoi(two)
	return watermark, events, late, rest
}

// Ask is what to read.
type Ask struct {
	Limit int // events of the log, at most
	// Apart lets the rows come by a statement of their own, straight from the log: for a page that may have ApartFrom items.
	Apart bool
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
	route_ids, attempt_no, error_count, fresh, replay, withheld, ` + rawEvent + `, starts, ends, lowest
from tidemark.pass_read($1, $2, $3, $4::text::tidemark.batch, $5, $6, $7, nullif($8::bigint, 0), not $9::boolean, $10, $11, $12)`

// readLog reads the fresh events that tidemark.pass_read has left out, in the same transaction. None is below $1: that spares
// the planner the partitions below.
const readLog = `with page as materialized (select nullif(current_setting('tidemark.page', true), '')::int8multirange as numbers)
select ` + rawEvent + ` from tidemark.outbox
where seq >= $1 and seq >= (select lower(numbers) from page) and seq < (select upper(numbers) from page) and (select numbers from page) @> seq
order by seq`

// byIndex lets readLog be planned as one scan of an index, whatever the statistics of a log that grows by the second say.
const byIndex = `select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
	set_config('max_parallel_workers_per_gather', '0', true)`

// ApartFrom is how many items make Ask.Apart worth it: to plan its statements costs what they save for some hundreds.
const ApartFrom = 1000

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
	apart := ask.Apart && !ask.Withhold
	args := []any{c.worker, c.epoch, ask.Limit, after, ask.KnownRoutes, routes, capacity, ask.Bytes, ask.Withhold, settle, apart, c.shard}
	var page *Page
	var err error
	if apart {
		var lowest int64
		if ask.After != nil { // its settle may be under way, and changes the cursor
			lowest = ask.After.lowest
		} else {
			lowest = c.lowest
		}
		page, err = c.readApart(ctx, args, lowest)
	} else {
		page, err = c.readWhole(ctx, args)
	}
	if err != nil {
		return nil, err
	}
	if page.Settled {
		c.Settled(page)
	}
	return page, nil
}

// inBinary are the options of a query whose answer comes in binary, whatever the pool's mode. In two modes pgx does not let the formats
// be chosen; like them, the one that is taken in their place leaves nothing on the server.
func inBinary(db Pool) []any {
	options := []any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}
	if mode := db.Config().ConnConfig.DefaultQueryExecMode; mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
		options = append(options, pgx.QueryExecModeCacheDescribe)
	}
	return options
}

// readWhole reads a page by one statement.
func (c *Cursor) readWhole(ctx context.Context, args []any) (*Page, error) {
	if c.binary == nil {
		c.binary = inBinary(c.pool)
	}
	rows, err := c.db.Query(ctx, readPage, slices.Concat(c.binary, args)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	page := &Page{}
	for first := true; rows.Next(); first = false {
		if err := page.row(rows.RawValues(), first); err != nil {
			return nil, err
		}
	}
	return page, rows.Err()
}

// readApart reads a page by two statements, of one transaction and one round trip: what is decided, then the rows straight from
// the log. pgx's batches do not let the formats be chosen.
func (c *Cursor) readApart(ctx context.Context, args []any, lowest int64) (*Page, error) {
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	var build pgx.ExtendedQueryBuilder
	if err := build.Build(conn.Conn().TypeMap(), nil, args); err != nil {
		return nil, err
	}
	binary := []int16{pgx.BinaryFormatCode}
	pipeline := conn.Conn().PgConn().StartPipeline(ctx)
	pipeline.SendQueryParams(byIndex, nil, nil, nil, binary)
	pipeline.SendQueryParams(readPage, build.ParamValues, nil, build.ParamFormats, binary)
	pipeline.SendQueryParams(readLog, [][]byte{strconv.AppendInt(nil, lowest, 10)}, nil, nil, binary)
	page := &Page{}
	if err = pipeline.Sync(); err == nil {
		err = page.results(pipeline)
	}
	return page, cmp.Or(err, pipeline.Close())
}

// results takes in what readApart has asked for, up to the commit.
func (p *Page) results(pipeline *pgconn.Pipeline) error {
	if err := eachRow(pipeline, func([][]byte, bool) error { return nil }); err != nil {
		return err
	}
	if err := eachRow(pipeline, p.row); err != nil {
		return err
	}
	pending := p.Items
	p.Items = nil
	if len(p.leaving) > 0 {
		p.Items = make([]Item, 0, p.Events+len(pending))
	}
	if err := eachRow(pipeline, func(raw [][]byte, _ bool) error {
		event, err := readEvent(raw, true)
		p.Items = append(p.Items, Item{Event: event, Attempt: 1, Fresh: true})
		return err
	}); err != nil {
		return err
	}
	if err := leave(p.Items, p.leaving); err != nil {
		return err
	}
	p.Items = append(p.Items, pending...)
	_, err := pipeline.GetResults()
	return err
}

// eachRow calls take for each row of the next result.
func eachRow(pipeline *pgconn.Pipeline, take func(raw [][]byte, first bool) error) error {
	got, err := pipeline.GetResults()
	if err != nil {
		return err
	}
	rows, is := got.(*pgconn.ResultReader)
	if !is {
		return fmt.Errorf("%T in place of rows", got)
	}
	for first := true; rows.NextRow(); first = false {
		if err := take(rows.Values(), first); err != nil {
			return err
		}
	}
	_, err = rows.Close()
	return err
}

// row reads a row of tidemark.pass_read.
func (p *Page) row(raw [][]byte, first bool) error {
	if first {
		return p.head(raw)
	}
	if p.Items == nil {
		p.Items = make([]Item, 0, max(p.Events, 1))
	}
	item, err := item(raw)
	p.Items = append(p.Items, item)
	return err
}

// head reads the columns that only the first row has.
func (p *Page) head(raw [][]byte) error {
	*p = Page{
		Gate: string(raw[0]), Open: isTrue(raw[2]), RoutesVersion: string(raw[7]), Settled: isTrue(raw[11]),
		place: string(raw[3]), batch: string(raw[4]), evidence: string(raw[5]),
	}
	if raw[1] != nil {
		p.Events = int(binary.BigEndian.Uint32(raw[1]))
	}
	if raw[6] != nil {
		if err := json.Unmarshal(raw[6][1:], &p.Routes); err != nil {
			return fmt.Errorf("routes: %w", err)
		}
	}
	if missing := raw[8]; missing != nil {
		p.Missing = int64(binary.BigEndian.Uint64(missing)) //nolint:gosec // it was signed
	}
	if seconds := raw[9]; seconds != nil {
		p.Inside = time.Duration(math.Float64frombits(binary.BigEndian.Uint64(seconds)) * float64(time.Second))
	}
	if names := raw[10]; len(names) > 0 {
		p.Shut = strings.Split(string(names), ",") // no name of a domain has a comma
	}
	if lowest := raw[36]; lowest != nil {
		p.lowest = int64(binary.BigEndian.Uint64(lowest)) //nolint:gosec // it was signed
	}
	starts, ends := int8s(raw[34]), int8s(raw[35])
	for n, route := range int4s(raw[12]) {
		p.leaving = append(p.leaving, departures{route, starts[n], ends[n]})
	}
	return nil
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
	err := c.db.QueryRow(ctx, `select tidemark.pass_payload($1, $2, $3, $4::text::uuid, $5, $6)`,
		c.worker, c.epoch, item.Seq, item.ID, replayOn, c.shard).Scan(&payload)
	if err != nil {
		return err
	}
	if payload == nil {
		return ErrGone
	}
	item.Payload, item.Withheld = payload, 0
	return nil
}

// int8s reads an array of one dimension without nulls.
func int8s(raw []byte) (numbers []int64) {
	for at := 20; at+12 <= len(raw); at += 12 {
		numbers = append(numbers, int64(binary.BigEndian.Uint64(raw[at+4:]))) //nolint:gosec // it was signed
	}
	return numbers
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

// departures are fresh events that leave by a route: those with numbers from start on, before end.
type departures struct {
	route      int32
	start, end int64
}

// leave gives the items, fresh events in the order of their numbers, the routes that they leave by. An event that the decision
// has and the log has not must not pass for delivered.
func leave(items []Item, all []departures) error {
	one := make([]int32, len(items)) // what most items need
	for i := range items {
		items[i].Routes = one[i : i : i+1]
	}
	for _, d := range all {
		first, _ := slices.BinarySearchFunc(items, d.start, func(it Item, seq int64) int { return cmp.Compare(it.Seq, seq) })
		last := first
		for ; last < len(items) && items[last].Seq < d.end; last++ {
			items[last].Routes = append(items[last].Routes, d.route)
		}
		if missing := d.end - d.start - int64(last-first); missing != 0 {
			return fmt.Errorf("of the events from %d on, %d are not in the log any more", d.start, missing)
		}
	}
	return nil
}
