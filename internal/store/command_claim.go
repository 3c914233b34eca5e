package store

import (
	"context"
	"encoding/json"
	"time"
)

// CommandClaim is an idempotency key that was used, and what became of its command.
type CommandClaim struct {
	Service        string     `db:"service" json:"service"`
	IdempotencyKey string     `db:"idempotency_key" json:"idempotency_key"`
	State          string     `db:"state" json:"state"` // processed, failed_retryable (parked) or failed_terminal
	Command        string     `db:"command" json:"command"`
	Version        int        `db:"version" json:"version"`
	EventID        string     `db:"event_id" json:"event_id"`
	Tenant         *string    `db:"tenant" json:"tenant"`
	Producer       *string    `db:"producer" json:"producer"`
	Via            string     `db:"via" json:"via"`
	Topic          *string    `db:"topic_id" json:"topic_id"`
	Partition      *int       `db:"partition" json:"partition"`
	Offset         *int64     `db:"offset" json:"offset"`
	ErrorCode      *string    `db:"error_code" json:"error_code"`
	Attempts       int        `db:"attempts" json:"attempts"`
	Trace          *string    `db:"trace" json:"trace"`
	ProcessedAt    time.Time  `db:"processed_at" json:"processed_at"`
	ExpiresAt      time.Time  `db:"expires_at" json:"expires_at"`
	NextAttemptAt  *time.Time `db:"next_attempt_at" json:"next_attempt_at"` // of a parked one; nil: it waits behind another
	OrderingKey    *string    `db:"ordering_key" json:"ordering_key"`       // of a parked one
}

const commandClaim = `select c.service, c.idempotency_key, c.state, c.command, c.version, c.event_id::text, c.tenant, c.producer, c.via, c.topic_id,
	c.partition, c."offset", c.error_code, c.attempts, c.trace, c.processed_at, c.expires_at, nullif(p.next_attempt_at, 'infinity') as next_attempt_at,
	p.key as ordering_key
from tidemark.command_claim c left join tidemark.command_parked p using (service, idempotency_key) `

// CommandDoing is how a command is doing: what came to each state within the hour, of the newest 10000 commands of all services.
type CommandDoing struct {
	Name      string `db:"name" json:"name"`
	Processed int64  `db:"processed" json:"processed"`
	Parked    int64  `db:"parked" json:"parked"`
	Failed    int64  `db:"failed" json:"failed"`
	Circuit   *int64 `db:"circuit" json:"circuit" doc:"The open finding command_circuit: it fails for another reason than its payload, and is tried without end."`
}

// CommandsDoing returns how the commands of a service are doing.
func (db *DB) CommandsDoing(ctx context.Context, service string) ([]CommandDoing, error) {
	return list[CommandDoing](ctx, db, `with newest as materialized (
			select c.service, c.command, c.version, c.state from tidemark.command_claim c
			where c.processed_at > now() - interval '1 hour' order by c.processed_at desc limit 10000),
		came as (
			select c.command, c.version, count(*) filter (where c.state = 'processed') as processed,
				count(*) filter (where c.state = 'failed_retryable') as parked, count(*) filter (where c.state = 'failed_terminal') as failed
			from newest c where c.service = $1 group by 1, 2)
		select c.name, coalesce(t.processed, 0) as processed, coalesce(t.parked, 0) as parked, coalesce(t.failed, 0) as failed,
			(select max(f.id) from tidemark.finding f where f.kind = 'command_circuit' and f.subject = c.name and f.closed_at is null) as circuit
		from tidemark.command c left join came t on t.command = c.command and t.version = c.version
		where c.service = $1 order by c.name`, service)
}

// ClaimFilter chooses claims. The zero value of a field chooses all.
type ClaimFilter struct {
	Service, State string
	Limit          int         // at most so many; 0: all
	After          *ClaimPlace // go on after this place; nil: from the newest
}

// ClaimPlace is the place of a claim in the list of claims. The claim itself may have moved or gone since.
type ClaimPlace struct {
	At      time.Time `json:"t"`
	Service string    `json:"s"`
	Key     string    `json:"k"`
}

// Place is where the claim is in the list.
func (c CommandClaim) Place() ClaimPlace {
	return ClaimPlace{c.ProcessedAt, c.Service, c.IdempotencyKey}
}

// CommandClaims returns claims, the newest first.
func (db *DB) CommandClaims(ctx context.Context, f ClaimFilter) ([]CommandClaim, error) {
	var after ClaimPlace
	if f.After != nil {
		after = *f.After
	}
	// What the states imply lets PostgreSQL begin with the few claims that have an error or are parked.
	return list[CommandClaim](ctx, db, commandClaim+`where ($1 = '' or c.service = $1) and ($2 = '' or c.state = $2)
			and ($2 <> 'failed_terminal' or c.error_code is not null) and ($2 <> 'failed_retryable' or p.service is not null)
			and ($4 or c.processed_at <= $5 and (c.processed_at < $5 or (c.service, c.idempotency_key) > ($6, $7)))
		order by c.processed_at desc, c.service, c.idempotency_key limit nullif($3::integer, 0)`, f.Service, f.State, f.Limit,
		f.After == nil, after.At, after.Service, after.Key)
}

// CommandClaimsOf returns the claims with an idempotency key, one of each service that has it. If there are none, it looks for the
// event id: that reads the claims that came since the last vacuum, and few others.
func (db *DB) CommandClaimsOf(ctx context.Context, name string) ([]CommandClaim, error) {
	all, err := list[CommandClaim](ctx, db, commandClaim+`where c.service = any (array(select s.service from tidemark.service s)) and c.idempotency_key = $1
		order by c.service`, name)
	if err != nil || len(all) > 0 {
		return all, err
	}
	return list[CommandClaim](ctx, db, commandClaim+`join tidemark.command_claims_of(
			case when $1 ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' then $1::uuid end) o using (service, idempotency_key)
		order by c.service`, name)
}

// ClaimDetails is a claim and what the command answered.
type ClaimDetails struct {
	CommandClaim
	Hidden       bool            `json:"-"` // this role may not read what follows
	ErrorMessage *string         `json:"error_message"`
	Result       json.RawMessage `json:"result" doc:"null: none, or hidden from this role."`
	Envelope     json.RawMessage `json:"envelope" doc:"Of a parked command, as it was checked: what it claims, and its payload; null: it is not parked, or hidden from this role."`
}

// ClaimDetails returns a claim with what the command answered, where this role may read it.
func (db *DB) ClaimDetails(ctx context.Context, c CommandClaim) (ClaimDetails, error) {
	d := ClaimDetails{CommandClaim: c}
	may, err := value[bool](ctx, db, `select has_column_privilege('tidemark.command_claim', 'result', 'select')`)
	if d.Hidden = !may; err != nil || d.Hidden {
		return d, err
	}
	type answer struct {
		Result  json.RawMessage `db:"result"`
		Message *string         `db:"error_message"`
		Call    json.RawMessage `db:"call"`
	}
	a, err := one[answer](ctx, db, `select c.result, c.error_message, p.call - 'raw' as call
		from tidemark.command_claim c left join tidemark.command_parked p using (service, idempotency_key)
		where c.service = $1 and c.idempotency_key = $2`, c.Service, c.IdempotencyKey)
	d.Result, d.ErrorMessage, d.Envelope = a.Result, a.Message, a.Call
	return d, err
}

// CommandClaim returns the claim of a key, or tidemark.ErrNotFound.
func (db *DB) CommandClaim(ctx context.Context, service, key string) (CommandClaim, error) {
	c, err := one[CommandClaim](ctx, db, commandClaim+`where c.service = $1 and c.idempotency_key = $2`, service, key)
	return known(c, err, "command of "+service+` with the idempotency key "`+key+`"`,
		"It was never asked for, was rejected, or has left by retention: tidemark command list")
}
