package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// Service offers commands.
type Service struct {
	Service        string `db:"service" json:"service"`
	Role           string `db:"role" json:"role"`
	UnknownCommand string `db:"unknown_command" json:"unknown_command"`
	Description    string `db:"description" json:"description"`
}

const service = `select s.service, s.role::text, s.unknown_command, s.description from `

// Services returns all services.
func (db *DB) Services(ctx context.Context) ([]Service, error) {
	return list[Service](ctx, db, service+`tidemark.service s order by s.service`)
}

// Service returns one service, or tidemark.ErrNotFound.
func (db *DB) Service(ctx context.Context, name string) (Service, error) {
	s, err := one[Service](ctx, db, service+`tidemark.service s where s.service = $1`, name)
	return known(s, err, `service "`+name+`"`, "Services: tidemark command service list")
}

// ServiceSet calls tidemark.service_set.
func (db *DB) ServiceSet(ctx context.Context, name string, changes Changes, reason string) (Service, error) {
	return one[Service](ctx, db, service+`tidemark.service_set($1, coalesce($2::jsonb, '{}'), nullif($3, '')) s`, name, changes, reason)
}

// Command is a version of a service's command. The columns of tidemark.command say what each field means.
type Command struct {
	Name          string          `db:"name" json:"name"`
	Service       string          `db:"service" json:"service"`
	Command       string          `db:"command" json:"command"`
	Version       int             `db:"version" json:"version"`
	SchemaVersion int             `db:"schema_version" json:"schema_version"`
	Function      *string         `db:"function" json:"function"`
	Statement     *string         `db:"statement" json:"statement"`
	Parameters    json.RawMessage `db:"parameters" json:"parameters"`
	PayloadSchema json.RawMessage `db:"payload_schema" json:"payload_schema"`
	ResultSchema  json.RawMessage `db:"result_schema" json:"result_schema"`
	Timeout       string          `db:"timeout" json:"timeout"` // interval
	RetryPolicy   json.RawMessage `db:"retry_policy" json:"retry_policy"`
	Terminal      []string        `db:"terminal" json:"terminal"`
	Retention     string          `db:"retention" json:"retention"` // interval
	WhenDisabled  string          `db:"when_disabled" json:"when_disabled"`
	Enabled       bool            `db:"enabled" json:"enabled"`
	DryRun        bool            `db:"dry_run" json:"dry_run"`
	Description   string          `db:"description" json:"description"`
	Tested        *string         `db:"tested" json:"tested"`       // checksum of the bundle; nil: not as it is registered
	Unchecked     []string        `db:"unchecked" json:"unchecked"` // keywords of PayloadSchema that SQL does not check
}

const command = `select c.name, c.service, c.command, c.version, c.schema_version, c.function, c.statement, c.parameters, c.payload_schema,
	c.result_schema, c.timeout::text, c.retry_policy, c.terminal, c.retention::text, c.when_disabled, c.enabled, c.dry_run, c.description, c.tested, c.unchecked
from `

// Commands returns the registered commands, or those of one service.
func (db *DB) Commands(ctx context.Context, service string) ([]Command, error) {
	return list[Command](ctx, db, command+`tidemark.command c where $1 = '' or c.service = $1 order by c.service, c.command, c.version`, service)
}

// Command returns one command by its name, such as billing.charge.capture/v1, or tidemark.ErrNotFound. The name of a command that
// has one version needs no version.
func (db *DB) Command(ctx context.Context, name string) (Command, error) {
	c, err := one[Command](ctx, db, command+`tidemark.command c where c.name = $1 or c.service || '.' || c.command = $1
		and 1 = (select count(*) from tidemark.command o where o.service = c.service and o.command = c.command)`, name)
	return known(c, err, `command "`+name+`"`, "Commands: select name from tidemark.command; the version may be left out of a name that has one.")
}

// CommandSet calls tidemark.command_set.
func (db *DB) CommandSet(ctx context.Context, service, name string, version int, changes Changes, reason string) (Command, error) {
	return one[Command](ctx, db, command+`tidemark.command_set($1, $2, $3, coalesce($4::jsonb, '{}'), nullif($5, '')) c`,
		service, name, version, changes, reason)
}

// CommandTargetProblem tells why a function cannot be that of a command; empty: it can.
func (db *DB) CommandTargetProblem(ctx context.Context, function string) (string, error) {
	return value[string](ctx, db, `select coalesce(t.problem, '') from tidemark.command_target($1) t`, function)
}

// CommandsErase says which commands of a service are erased. Zero: not asked for.
type CommandsErase struct {
	Service, Reason, Tenant, Key string
	Before                       time.Time
	DryRun                       bool
}

// ErasedCommands is how many rows were erased. Waiting are those that are parked.
type ErasedCommands struct {
	Claims      int64 `db:"claims" json:"claims"`
	Records     int64 `db:"records" json:"records"`
	DeadLetters int64 `db:"dead_letters" json:"dead_letters"`
	Waiting     int64 `db:"waiting" json:"waiting"`
	Complete    bool  `db:"complete" json:"-"`
}

// CommandsErasePart calls tidemark.commands_erase once.
func (db *DB) CommandsErasePart(ctx context.Context, e CommandsErase) (ErasedCommands, error) {
	return one[ErasedCommands](ctx, db, `select e.claims, e.records, e.dead_letters, e.waiting, e.complete
		from tidemark.commands_erase($1, $2, nullif($3, ''), nullif($4, ''), $5, $6) e`, e.Service, e.Reason, e.Tenant, e.Key, instant(e.Before), e.DryRun)
}

// CommandsErase calls tidemark.commands_erase until it is complete, each call a transaction of its own.
func (db *DB) CommandsErase(ctx context.Context, e CommandsErase) (all ErasedCommands, err error) {
	for !all.Complete {
		part, err := db.CommandsErasePart(ctx, e)
		if err != nil {
			return all, err
		}
		all = ErasedCommands{all.Claims + part.Claims, all.Records + part.Records, all.DeadLetters + part.DeadLetters, part.Waiting, part.Complete}
	}
	return all, nil
}

// CommandDelete calls tidemark.command_delete.
func (db *DB) CommandDelete(ctx context.Context, c Command, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.command_delete($1, $2, $3, $4)`, c.Service, c.Command, c.Version, reason)
	return tidemark.AsError(err)
}

// ServiceDelete calls tidemark.service_delete.
func (db *DB) ServiceDelete(ctx context.Context, name, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.service_delete($1, $2)`, name, reason)
	return tidemark.AsError(err)
}

// ProducerKeyDelete calls tidemark.producer_key_delete.
func (db *DB) ProducerKeyDelete(ctx context.Context, kid, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.producer_key_delete($1, $2)`, kid, reason)
	return tidemark.AsError(err)
}

// Producer is a row of the allowlist.
type Producer struct {
	Producer string   `db:"producer" json:"producer"`
	Command  *string  `db:"command" json:"command"`
	Version  *int     `db:"version" json:"version"`
	Tenants  []string `db:"tenants" json:"tenants"`
}

// Producers returns the allowlist of a service.
func (db *DB) Producers(ctx context.Context, service string) ([]Producer, error) {
	return list[Producer](ctx, db, `select p.producer, p.command, p.version, p.tenants from tidemark.command_producer p
		where p.service = $1 order by p.producer, p.command, p.version`, service)
}

// CommandAllow calls tidemark.command_allow.
func (db *DB) CommandAllow(ctx context.Context, service string, p Producer, reason string) error {
	_, err := value[string](ctx, db, `select p.producer from tidemark.command_allow($1, $2, $3, $4, $5, nullif($6, '')) p`,
		service, p.Producer, p.Command, p.Version, p.Tenants, reason)
	return err
}

// CommandDisallow calls tidemark.command_disallow.
func (db *DB) CommandDisallow(ctx context.Context, service string, p Producer, reason string) error {
	_, err := value[bool](ctx, db, `select tidemark.command_disallow($1, $2, $3, $4, nullif($5, '')) is null`,
		service, p.Producer, p.Command, p.Version, reason)
	return err
}

// ProducerKey is a producer's public key.
type ProducerKey struct {
	KID        string          `db:"kid" json:"kid"`
	Service    string          `db:"service" json:"service"`
	Producer   string          `db:"producer" json:"producer"`
	PublicKey  json.RawMessage `db:"public_key" json:"public_key"`
	Tenants    []string        `db:"tenants" json:"tenants"`
	Commands   []string        `db:"commands" json:"commands"`
	ValidFrom  time.Time       `db:"valid_from" json:"valid_from"`
	ValidUntil *time.Time      `db:"valid_until" json:"valid_until"`
	RevokedAt  *time.Time      `db:"revoked_at" json:"revoked_at"`
}

const producerKey = `select k.kid, k.service, k.producer, k.public_key, k.tenants, k.commands, k.valid_from, k.valid_until, k.revoked_at from `

// ProducerKeys returns the keys of a service, or all.
func (db *DB) ProducerKeys(ctx context.Context, service string) ([]ProducerKey, error) {
	return list[ProducerKey](ctx, db, producerKey+`tidemark.producer_key k where $1 = '' or k.service = $1 order by k.kid`, service)
}

// ProducerKeyAdd calls tidemark.producer_key_add. A zero ValidFrom is now.
func (db *DB) ProducerKeyAdd(ctx context.Context, k ProducerKey, reason string) (ProducerKey, error) {
	var from *time.Time
	if !k.ValidFrom.IsZero() {
		from = &k.ValidFrom
	}
	return one[ProducerKey](ctx, db, producerKey+`tidemark.producer_key_add($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, '')) k`,
		k.KID, k.Service, k.Producer, k.PublicKey, k.Tenants, k.Commands, from, k.ValidUntil, reason)
}

// ProducerKeyRevoke calls tidemark.producer_key_revoke.
func (db *DB) ProducerKeyRevoke(ctx context.Context, kid, reason string) (ProducerKey, error) {
	return one[ProducerKey](ctx, db, producerKey+`tidemark.producer_key_revoke($1, nullif($2, '')) k`, kid, reason)
}

// CommandRecord is a record of Kafka as it came.
type CommandRecord struct {
	ID      int64
	Key     RecordBytes
	Value   RecordBytes
	Headers []RecordHeader
}

// RecordBytes is the key or the value of a record.
type RecordBytes struct {
	Bytes []byte // nil: null, or left out
	Size  int
	Sum   []byte // the SHA-256 of bytes that were left out; nil: they were not
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Name  string
	Value []byte
}

// CommandRecords returns raw records by their numbers, those that are there. It leaves out a key or a value of more than so many bytes.
func (db *DB) CommandRecords(ctx context.Context, ids []int64, most int) ([]CommandRecord, error) {
	type row struct {
		ID        int64           `db:"id"`
		Key       []byte          `db:"key"`
		KeySize   int             `db:"key_size"`
		KeySum    []byte          `db:"key_sum"`
		Value     []byte          `db:"value"`
		ValueSize int             `db:"value_size"`
		ValueSum  []byte          `db:"value_sum"`
		Headers   json.RawMessage `db:"headers"`
	}
	rows, err := list[row](ctx, db, `select r.id, coalesce(r.headers, '[]') as headers, coalesce(octet_length(r.key), 0) as key_size, coalesce(octet_length(r.value), 0) as value_size,
		case when octet_length(r.key) <= $2 then r.key end as key, case when octet_length(r.key) > $2 then sha256(r.key) end as key_sum,
		case when octet_length(r.value) <= $2 then r.value end as value, case when octet_length(r.value) > $2 then sha256(r.value) end as value_sum
		from tidemark.command_record r where r.id = any($1)`, ids, most)
	if err != nil {
		return nil, err
	}
	all := make([]CommandRecord, len(rows))
	for i, r := range rows {
		var headers [][2]*string // name, value in base64
		if err := json.Unmarshal(r.Headers, &headers); err != nil {
			return nil, err
		}
		all[i] = CommandRecord{ID: r.ID, Key: RecordBytes{r.Key, r.KeySize, r.KeySum}, Value: RecordBytes{r.Value, r.ValueSize, r.ValueSum}}
		for _, h := range headers {
			header := RecordHeader{Name: *cmp.Or(h[0], new(""))}
			if h[1] != nil {
				if header.Value, err = base64.StdEncoding.DecodeString(*h[1]); err != nil {
					return nil, err
				}
			}
			all[i].Headers = append(all[i].Headers, header)
		}
	}
	return all, nil
}

// CommandMark is a point in the log, before a command was sent.
type CommandMark struct {
	Seq int64     `db:"seq"`
	At  time.Time `db:"at"`
}

// CommandMark returns the point where the log is now.
func (db *DB) CommandMark(ctx context.Context) (CommandMark, error) {
	return one[CommandMark](ctx, db, `select coalesce((select o.seq from tidemark.outbox o order by o.seq desc limit 1), 0) as seq, clock_timestamp() as at`)
}

// CommandAnswer is what became of a record.
type CommandAnswer struct {
	Document json.RawMessage `db:"document"` // the newest result; nil: none
	DryRun   bool            `db:"dry_run"`
	Letter   string          `db:"letter"` // reason of the dead letter; empty: none
	Passed   bool            `db:"passed"` // the record was taken
}

// Final: nothing more will come of the record.
func (a CommandAnswer) Final() bool {
	var d struct{ Status string }
	if a.Document == nil {
		return a.Passed
	}
	return json.Unmarshal(a.Document, &d) == nil && d.Status != "failed_retryable"
}

// CommandAnswer returns what became of the record with a command that was sent after the mark. The answer commits with the cursor:
// before that the log is not searched. It needs tidemark_executor, as
// results do.
func (db *DB) CommandAnswer(ctx context.Context, service, eventID, topic string, partition int32, offset int64, after CommandMark) (CommandAnswer, error) {
	return one[CommandAnswer](ctx, db, `select coalesce(r.payload, d.document::jsonb) as document, r.payload is null and d.document is not null as dry_run,
		coalesce(l.error_code, '') as letter, p.passed
		from (select exists (select from tidemark.worker_cursor c where c.worker = $6 and c.source = $7 and c.shard = $4
			and c.watermark_id::bigint > $5) as passed) p
		left join lateral (select o.payload from tidemark.outbox o where p.passed and o.seq > $8 and o.domain = 'commands' and o.type = 'result.' || $1
			and o.payload ->> 'event_id' = $2 order by o.seq desc limit 1) r on true
		left join lateral (select c.document from tidemark.command_record c where c.recorded_at >= $9 and c.why = 'dry_run' and c.topic = $3 and c.partition = $4
			and c."offset" = $5 limit 1) d on true
		left join lateral (select x.error_code from tidemark.command_record c join tidemark.dead_letter x on x.idempotency_key = tidemark.command_letter_key(c.id, c.replays)
			where c.recorded_at >= $9 and c.why = 'dead_letter' and c.topic = $3 and c.partition = $4 and c."offset" = $5 limit 1) l on true`,
		service, eventID, topic, partition, offset, CommandWorker, CommandSource(topic), after.Seq, after.At)
}

// ClosedCommand returns the gate that keeps the commands of a service from running; empty: none.
func (db *DB) ClosedCommand(ctx context.Context, service string) (string, error) {
	return value[string](ctx, db, `select coalesce(tidemark.closed_command($1), '')`, service)
}

// TakesCommands tells whether a daemon that takes commands from Kafka has beaten lately.
func (db *DB) TakesCommands(ctx context.Context) (bool, error) {
	return value[bool](ctx, db, `select exists (select from tidemark.heartbeat_health h
		where h.executor_id like 'daemon/%' and h.state = 'alive' and h.payload @> '{"commands": true}')`)
}

// CommandResult is a result document, with its number in the log.
type CommandResult struct {
	Seq      int64           `db:"seq"`
	Document json.RawMessage `db:"document"`
}

// CommandResultsFrom returns the number before the first event of this time or later; the zero time: the newest number.
func (db *DB) CommandResultsFrom(ctx context.Context, since time.Time) (int64, error) {
	var from *time.Time
	if !since.IsZero() {
		from = &since
	}
	return value[int64](ctx, db, `select coalesce(
		case when $1::timestamptz is not null then tidemark.seq_of_time($1) - 1 end,
		(select o.seq from tidemark.outbox o order by o.seq desc limit 1), 0)`, from)
}

// CommandResults returns results of a service, or of all, whose numbers are higher, in order.
func (db *DB) CommandResults(ctx context.Context, service string, after int64, limit int) ([]CommandResult, error) {
	return list[CommandResult](ctx, db, `select o.seq, o.payload as document from tidemark.outbox o
		where o.seq > $1 and o.domain = 'commands' and o.type like 'result.%' and ($2 = '' or o.type = 'result.' || $2) order by o.seq limit $3`, after, service, limit)
}

// CommandRun calls tidemark.command_run, and returns the result document.
func (db *DB) CommandRun(ctx context.Context, envelope []byte) (json.RawMessage, error) {
	return value[json.RawMessage](ctx, db, `select tidemark.command_run($1::text)`, string(envelope))
}

// CommandContract is what is to be known of a command before it is asked for.
type CommandContract struct {
	SchemaVersion int             `db:"schema_version"`
	Digest        string          `db:"digest"`         // of Schema
	Schema        json.RawMessage `db:"payload_schema"` // of payloads; null: SQL checks all of it
	Patience      int64           `db:"patience"`       // for how long it may run, in ms
}

// CommandContract returns that of a command, and false if no such command is registered.
func (db *DB) CommandContract(ctx context.Context, name CommandName) (CommandContract, bool, error) {
	all, err := list[CommandContract](ctx, db, `select c.schema_version, md5(c.payload_schema::text) as digest,
		case when c.unchecked is distinct from '{}' then c.payload_schema end as payload_schema,
		tidemark.command_patience(jsonb_build_array(jsonb_build_object('service', c.service, 'command', c.command, 'command_version', c.version))) as patience
		from tidemark.command c where c.service = $1 and c.command = $2 and c.version = $3`, name.Service, name.Command, name.Version)
	if err != nil || len(all) == 0 {
		return CommandContract{}, false, err
	}
	return all[0], true, nil
}

// CommandIngress calls tidemark.command_ingress, and returns the result document. The server ends a call that takes longer than the
// timeout. judged: the digest of the schema by which misfit was found; empty: SQL checks all of it. overdue: it did not come to an end
// before, and is parked without being run.
func (db *DB) CommandIngress(ctx context.Context, timeout time.Duration, envelope []byte, misfit any, judged string, overdue bool) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+networkTime)
	defer cancel()
	text, err := json.Marshal(misfit)
	if err != nil {
		return nil, err
	}
	var document string
	err = within(ctx, db.querier, timeout, &document, `select tidemark.command_ingress($1, nullif($2::text::jsonb, 'null'), $3, $4)::text`, string(envelope), string(text), overdue, judged)
	return json.RawMessage(document), err
}

// CommandCall calls the function that command_set has made for a command, with the rights of its service and none of the checks of
// command_run. The error is PostgreSQL's own, and may quote the payload.
func (db *DB) CommandCall(ctx context.Context, name string, payload, context json.RawMessage) error {
	id, err := value[int](ctx, db, `select c.id from tidemark.command c where c.name = $1`, name)
	if err != nil {
		return err
	}
	_, err = value[json.RawMessage](ctx, db, fmt.Sprintf(`select tidemark.command_%d($1, $2)`, id), payload, context)
	return err
}

// CommandSought is a partition that goes on at another offset.
type CommandSought struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Was       int64  `json:"was" doc:"The offset of the next record before."`
	Next      int64  `json:"next" doc:"The offset of the next record now."`
}

// CommandSeek calls tidemark.command_seek: where the consumer goes on in a partition.
func (db *DB) CommandSeek(ctx context.Context, topic string, partition int, next int64, reason string) (CommandSought, error) {
	was, err := value[int64](ctx, db, `select tidemark.command_seek($1, $2, $3, $4)`, topic, partition, next, reason)
	return CommandSought{topic, partition, was, next}, err
}

// CommandDiscard calls tidemark.command_discard, and returns the result document.
func (db *DB) CommandDiscard(ctx context.Context, service, key, reason string) (json.RawMessage, error) {
	return value[json.RawMessage](ctx, db, `select tidemark.command_discard($1, $2, $3)`, service, key, reason)
}
