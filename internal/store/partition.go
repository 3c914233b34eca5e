package store

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CommandWorker is the worker that reads commands from Kafka.
const CommandWorker = "commands"

// CommandSource names a topic as a source.
func CommandSource(topic string) string { return "kafka:" + topic }

// Partition is the cursor of a partition of a topic of commands, under a lease from Claim to Release.
type Partition struct{ lease }

// NewPartition returns the cursor, not claimed yet.
func NewPartition(db Querier, topic string, partition int, owner string, lasts time.Duration) *Partition {
	return &Partition{lease{db: db, worker: CommandWorker, source: CommandSource(topic), shard: partition, owner: owner, lasts: lasts}}
}

// Place returns the next offset, and the id of the topic that it is of.
func (p *Partition) Place(ctx context.Context) (next int64, topicID string, err error) {
	err = p.db.QueryRow(ctx, `select watermark_id::bigint, coalesce(metadata ->> 'topic_id', '') from tidemark.worker_cursor
		where worker = $1 and source = $2 and shard = $3`, p.worker, p.source, p.shard).Scan(&next, &topicID)
	return next, topicID, err
}

// Call is a record of Kafka as tidemark.command_passes takes it.
type Call struct {
	Offset int64
	At     time.Time   // the broker's timestamp
	Name   CommandName // empty: the record is refused
	About  About
	JSON   json.RawMessage        // the call
	Bare   func() json.RawMessage // of a refused record, if the call cannot be recorded; nil: it is not refused
}

// About is what a log line of a command tells, as far as the record says it.
type About struct {
	EventID string `json:"event_id"`
	Service string `json:"service"`
	Command string `json:"command"`
	TraceID string `json:"trace_id"`
}

// CommandName names a command.
type CommandName struct {
	Service string `json:"service"`
	Command string `json:"command"`
	Version int    `json:"command_version"`
}

// Patience is for how long a pass of these commands may run: tidemark.command_patience.
func (p *Partition) Patience(ctx context.Context, names []CommandName) (time.Duration, error) {
	calls, err := json.Marshal(names)
	if err != nil {
		return 0, err
	}
	var ms int64
	err = p.db.QueryRow(ctx, `select tidemark.command_patience($1::text::jsonb)`, string(calls)).Scan(&ms)
	return time.Duration(ms) * time.Millisecond, err
}

// Ways to pass commands.
const (
	Batch   = "batch"
	Alone   = "alone"
	Overdue = "overdue"
)

// Records is what a pass takes of a partition.
type Records struct {
	TopicID    string
	From, Next int64 // offsets
	Calls      []Call
	Behind     int64 // records that are not among them
	Since      *time.Time
}

// CommandPass is what a pass over a partition did.
type CommandPass struct {
	Status string `json:"status"` // ran, waiting (at the record of a service whose gate is closed) or closed
	Detail string `json:"detail"`
	Rows   int    `json:"rows"`
	Next   int64  `json:"next"`

	Told    []string `json:"outcomes"`
	Letters []int64  `json:"letters"`
}

// CommandOutcome is what became of a command.
type CommandOutcome struct {
	Status string
	Code   string        // reason; empty: none
	Took   time.Duration // 0: it did not run
	Letter bool          // it has a dead letter
}

// Outcomes are those of the calls that were passed.
func (p *CommandPass) Outcomes(calls []Call) []CommandOutcome {
	all := make([]CommandOutcome, min(len(p.Told), len(calls)))
	for i := range all {
		part := strings.SplitN(p.Told[i], "|", 3)
		ms, _ := strconv.ParseFloat(part[2], 64) // empty: it did not run
		all[i] = CommandOutcome{part[0], part[1], time.Duration(ms * float64(time.Millisecond)), part[0] != "redelivered" && slices.Contains(p.Letters, calls[i].Offset)}
	}
	return all
}

// Pass calls tidemark.command_passes for this partition alone.
func (p *Partition) Pass(ctx context.Context, timeout time.Duration, r Records, way string) (CommandPass, error) {
	got, err := PassTogether(ctx, timeout, []PartitionPage{{p, r}}, way)
	if err != nil {
		return CommandPass{}, err
	}
	return got[0], nil
}

// A PartitionPage is what a pass takes of a partition, which is claimed.
type PartitionPage struct {
	*Partition
	Records
}

// PassTogether calls tidemark.command_passes, as one round trip and one transaction, which the server ends after the timeout. The
// partitions are of one process. It returns what was done of each.
func PassTogether(ctx context.Context, timeout time.Duration, pages []PartitionPage, way string) (got []CommandPass, err error) {
	passes := make([]string, len(pages))
	for i, p := range pages {
		if passes[i], err = p.json(); err != nil {
			return nil, err
		}
	}
	var summaries []byte
	err = within(ctx, pages[0].db, timeout, &summaries, `select tidemark.command_passes($1::text::jsonb, $2::float8 * interval '1 second', $3)`,
		"["+strings.Join(passes, ",")+"]", pages[0].lasts.Seconds(), way)
	if err != nil {
		return nil, err
	}
	return got, json.Unmarshal(summaries, &got)
}

// json is the page as tidemark.command_passes takes it.
func (p *PartitionPage) json() (string, error) {
	head, err := json.Marshal(struct {
		Source  string     `json:"source"`
		Shard   int        `json:"shard"`
		Epoch   int64      `json:"epoch"`
		TopicID string     `json:"topic_id"`
		From    int64      `json:"from"`
		Next    int64      `json:"next"`
		Behind  int64      `json:"behind"`
		Since   *time.Time `json:"since"`
	}{p.source, p.shard, p.epoch, p.TopicID, p.From, p.Next, p.Behind, p.Since})
	calls := make([]string, len(p.Calls)) // to marshal them would read each again
	for i, c := range p.Calls {
		calls[i] = string(c.JSON)
	}
	return strings.TrimSuffix(string(head), "}") + `,"calls":[` + strings.Join(calls, ",") + "]}", err
}

// CommandPartition calls tidemark.command_partition: where to go on, or why not. reached is where the cursor was before end was asked for.
func (db *DB) CommandPartition(ctx context.Context, topic string, partition int32, topicID string, first, end, reached int64) (next int64, held string, err error) {
	err = db.querier.QueryRow(ctx, `select next_offset, coalesce(held, '') from tidemark.command_partition($1, $2, $3, $4, $5, $6)`,
		topic, partition, topicID, first, end, reached).Scan(&next, &held)
	return next, held, err
}

// CommandPartitionLost calls tidemark.command_partition_lost: Kafka has only the records before kept of what was read.
func (db *DB) CommandPartitionLost(ctx context.Context, topic string, partition int32, topicID string, kept int64) error {
	_, err := db.querier.Exec(ctx, `select tidemark.command_partition_lost($1, $2, $3, $4)`, topic, partition, topicID, kept)
	return err
}

// CommandsFailing reports, by tidemark.worker_finding, what keeps the consumer of commands from reading; empty: nothing does.
func (db *DB) CommandsFailing(ctx context.Context, detail string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.worker_finding($1, 'worker_failing', $1, nullif($2, ''))`, CommandWorker, detail)
	return err
}

// CommandTopic is a topic that commands come from, or would come from.
type CommandTopic struct {
	Topic    string `json:"topic"`
	Service  string `json:"service,omitempty"` // whose topic it is; empty: services share it
	There    bool   `json:"there"`
	KeepsMS  *int64 `json:"keeps_ms,omitempty"`  // for how long it keeps records; negative: without end; nil: not known
	OwnTimes bool   `json:"own_times,omitempty"` // its producers set the times of records
	Unnamed  bool   `json:"unnamed,omitempty"`   // its cluster has no name but that of a connection, which others may have too
}

// CommandUncompiled is a command whose schema of payloads does not compile.
type CommandUncompiled struct {
	CommandName
	Digest  string `json:"digest"`
	Problem string `json:"problem"`
}

// CommandSetup calls tidemark.command_setup.
func (db *DB) CommandSetup(ctx context.Context, topics []CommandTopic, uncompiled []CommandUncompiled) error {
	given, err := json.Marshal(topics)
	if err != nil {
		return err
	}
	schemas, err := json.Marshal(uncompiled)
	if err != nil {
		return err
	}
	_, err = db.querier.Exec(ctx, `select tidemark.command_setup(coalesce(nullif($1::text::jsonb, 'null'), '[]'), coalesce(nullif($2::text::jsonb, 'null'), '[]'))`, string(given), string(schemas))
	return err
}

// CommandTopics are the topics that were read.
func (db *DB) CommandTopics(ctx context.Context) ([]string, error) {
	return value[[]string](ctx, db, `select array(select distinct substr(c.source, 7) from tidemark.worker_cursor c
		where c.worker = $1 and c.source like 'kafka:%' order by 1)`, CommandWorker)
}

// CommandPolicy is what the consumer has to know before it hands over a record.
type CommandPolicy struct {
	Gate        string // closed; empty: none
	SharedTopic string // refuse, signed or claimed
	Keys        []ProducerKey
	Schemas     []CommandSchema // of payloads, those that SQL does not check whole, also of commands that are off: their records are parked
}

// CommandSchema is the schema of a command's payload.
type CommandSchema struct {
	Service string          `db:"service"`
	Command string          `db:"command"`
	Version int             `db:"version"`
	Schema  json.RawMessage `db:"payload_schema"` // null: known
	Digest  string          `db:"digest"`
}

// Name is that of the command.
func (s CommandSchema) Name() CommandName { return CommandName{s.Service, s.Command, s.Version} }

// CommandPolicy reads the gate, the setting commands.shared_topic, the producers' keys and the schemas. Those with a known digest
// come without their text.
func (db *DB) CommandPolicy(ctx context.Context, known []string) (p CommandPolicy, err error) {
	err = db.querier.QueryRow(ctx, `select coalesce(tidemark.closed_gate($1), ''),
		coalesce((select value from tidemark.setting where key = 'commands.shared_topic'), 'signed')`, CommandWorker).Scan(&p.Gate, &p.SharedTopic)
	if err != nil {
		return p, err
	}
	if p.Keys, err = db.ProducerKeys(ctx, ""); err != nil {
		return p, err
	}
	p.Schemas, err = list[CommandSchema](ctx, db, `select c.service, c.command, c.version, d.digest, case when d.digest = any ($1) then null else c.payload_schema end as payload_schema
		from tidemark.command c cross join lateral (select md5(c.payload_schema::text) as digest) d
		where c.unchecked is distinct from '{}'`, known)
	return p, err
}

// Retried is a parked command that was tried.
type Retried struct {
	About
	Version int    `json:"command_version"`
	Status  string `json:"status"`
	Code    string `json:"error_code"`
}

// CommandRetry tries parked commands that are due, and those behind them, at most so many, and returns what became of them; none: none is
// due. With most 1, a command that the server had to end, or that ended the session, waits on: it does not keep the others from their
// turn. With more, that is the error, and nothing took effect.
func (db *DB) CommandRetry(ctx context.Context, most int) (tried []Retried, err error) {
	var services, keys []string
	var ms *int64
	looking, cancel := context.WithTimeout(ctx, networkTime)
	defer cancel()
	err = db.querier.QueryRow(looking, `select services, idempotency_keys, patience from tidemark.command_retry_next($1)`, most).Scan(&services, &keys, &ms)
	if err != nil || services == nil {
		return nil, err
	}
	var answer []byte
	try := func(statement string, args ...any) error {
		timeout := time.Duration(*ms) * time.Millisecond
		limited, cancel := context.WithTimeout(ctx, timeout+networkTime)
		defer cancel()
		return within(limited, db.querier, timeout, &answer, statement, args...)
	}
	if most > 1 {
		err = try(`select tidemark.command_retry_batch($1, $2, $3)`, services, keys, most)
	} else {
		const alone = `select json_build_array(tidemark.command_retry_one($1, $2, $3))`
		if err = try(alone, services[0], keys[0], false); TimedOut(err) || ctx.Err() == nil && SessionEnded(err) {
			err = try(alone, services[0], keys[0], true)
		}
	}
	if err != nil {
		return nil, err
	}
	var answers []*Retried // null: not due any more
	if err := json.Unmarshal(answer, &answers); err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a != nil {
			tried = append(tried, *a)
		}
	}
	return tried, nil
}

// networkTime is how much longer than the server's own timeout a statement is waited for: its connection may be forgotten by the
// network.
const networkTime = 5 * time.Second

// CommandCursor is where a partition of a topic of commands is.
type CommandCursor struct {
	Partition int32  `db:"shard"`
	TopicID   string `db:"topic_id"`
	Next      int64  `db:"next"`
}

// CommandCursors returns the cursors of a topic.
func (db *DB) CommandCursors(ctx context.Context, topic string) ([]CommandCursor, error) {
	return list[CommandCursor](ctx, db, `select c.shard, coalesce(c.metadata ->> 'topic_id', '') as topic_id, c.watermark_id::bigint as next
		from tidemark.worker_cursor c where c.worker = $1 and c.source = $2 order by c.shard`, CommandWorker, CommandSource(topic))
}

// CommandReplayAsk is which commands to replay.
type CommandReplayAsk struct {
	Service string
	Since   time.Time // zero: all
	Code    string    // with this reason code; empty: all
	Failed  bool      // those that are failed_terminal, too
	DryRun  bool      // only count
	Reason  string
}

// CommandReplay calls tidemark.command_replay: so many records after this one. last is nil at the end.
func (db *DB) CommandReplay(ctx context.Context, ask CommandReplayAsk, most int, after int64) (last *int64, outcomes map[string]int64, err error) {
	var since *time.Time
	if !ask.Since.IsZero() {
		since = &ask.Since
	}
	type answer struct {
		Last     *int64          `db:"last"`
		Outcomes json.RawMessage `db:"outcomes"`
	}
	a, err := one[answer](ctx, db, `select r.last, r.outcomes from tidemark.command_replay($1, $2, nullif($3, ''), $4, $5, nullif($6, ''), $7, $8) r`,
		ask.Service, since, ask.Code, ask.Failed, ask.DryRun, ask.Reason, most, after)
	if err != nil {
		return nil, nil, err
	}
	return a.Last, outcomes, json.Unmarshal(a.Outcomes, &outcomes)
}

// CommandReplayTopic calls tidemark.command_replay_topic.
func (db *DB) CommandReplayTopic(ctx context.Context, ask CommandReplayAsk, calls []json.RawMessage) (outcomes map[string]int64, err error) {
	text, err := json.Marshal(calls)
	if err != nil {
		return nil, err
	}
	got, err := value[json.RawMessage](ctx, db, `select tidemark.command_replay_topic($1::text::jsonb, $2, $3, $4, nullif($5, ''))`,
		string(text), ask.Service, ask.Failed, ask.DryRun, ask.Reason)
	if err != nil {
		return nil, err
	}
	return outcomes, json.Unmarshal(got, &outcomes)
}

// PayloadsExpire calls tidemark.payloads_expire. more: another call would erase more.
func (db *DB) PayloadsExpire(ctx context.Context) (more bool, err error) {
	return value[bool](ctx, db, `select coalesce(bool_or(e.more), false) from tidemark.payloads_expire() e`)
}

// EmitKeysExpire calls tidemark.emit_keys_expire. more: another call would delete more.
func (db *DB) EmitKeysExpire(ctx context.Context) (more bool, err error) {
	return value[bool](ctx, db, `select coalesce(bool_or(e.more), false) from tidemark.emit_keys_expire() e`)
}
