package bundletest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/bundle"
)

// asker is who asks for a command.
type asker struct{ producer, tenant string }

const standIn = "tidemark-command-test"

// asker is a producer on the allowlist. listed: false if the bundle has none for the command.
func (t *tester) asker(c bundle.Command) (_ asker, listed bool) {
	p, found := t.bundle.Asker(c)
	switch {
	case !found:
		return asker{standIn, ""}, false
	case p.Tenants == nil, slices.Contains(p.Tenants, "*"):
		return asker{p.Producer, ""}, true
	}
	return asker{p.Producer, p.Tenants[0]}, true
}

// envelope is a command that should be taken, as its members.
type envelope map[string]any

func (t *tester) envelope(c bundle.Command, e bundle.Example, key string) envelope {
	who, _ := t.asker(c)
	metadata := map[string]any{"producer": who.producer}
	if who.tenant != "" {
		metadata["tenant"] = who.tenant
	}
	return envelope{
		"event_id": command.NewEventID(), "service": t.bundle.Service, "command": c.Command, "command_version": c.Version, "schema_version": e.SchemaVersion,
		"payload": e.Payload, "idempotency_key": key, "occurred_at": time.Now().UTC().Format(time.RFC3339Nano),
		"trace_id": command.NewTraceID(), "metadata": metadata,
	}
}

// with is a copy with another value of a member.
func (e envelope) with(member string, value any) envelope {
	e = maps.Clone(e)
	e[member] = value
	return e
}

func (e envelope) without(member string) envelope {
	e = maps.Clone(e)
	delete(e, member)
	return e
}

// again is a copy that asks for it again: another event id and trace.
func (e envelope) again() envelope {
	return e.with("event_id", command.NewEventID()).with("trace_id", command.NewTraceID())
}

func (e envelope) text() []byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // payloads are JSON: lint has read them
	}
	return text
}

// context is what a function gets beside its payload.
func (e envelope) context() json.RawMessage {
	context := map[string]any{}
	for _, member := range members {
		if member != "payload" && member != "metadata" && member != "schema_version" {
			context[member] = e[member]
		}
	}
	metadata, _ := e["metadata"].(map[string]any)
	maps.Copy(context, metadata)
	text, err := json.Marshal(context)
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}

// answer is the result document.
type answer struct {
	EventID     string          `json:"event_id"`
	Status      string          `json:"status"`
	Original    string          `json:"original_status"`
	Code        command.Reason  `json:"error_code"`
	Message     string          `json:"error_message"`
	ProcessedAt string          `json:"processed_at"`
	Result      json.RawMessage `json:"result"`
}

func (a answer) String() string {
	text := a.Status
	for _, more := range []string{string(a.Code), a.Message} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// ask runs a command, and commits.
func (s scratch) ask(ctx context.Context, record []byte) (a answer, err error) {
	document, err := s.db.CommandRun(ctx, record)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(document, &a)
}

// state is a digest of each table, apart from Tidemark's own.
func (s scratch) state(ctx context.Context) (map[string]string, error) {
	rows, _ := s.Query(ctx, `select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and c.relpersistence <> 't' and n.nspname not in ('tidemark', 'information_schema') and n.nspname !~ '^pg_'`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, table := range tables {
		var digest string
		if err := s.QueryRow(ctx, `select md5(coalesce(string_agg(md5(t::text), '' order by md5(t::text)), '')) from only `+table+` t`).Scan(&digest); err != nil {
			return nil, err
		}
		all[table] = digest
	}
	return all, nil
}

// left names what has changed since; nothing may have.
func (s scratch) left(ctx context.Context, before map[string]string) ([]string, error) {
	after, err := s.state(ctx)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, table := range slices.Sorted(maps.Keys(after)) {
		if after[table] != before[table] {
			changed = append(changed, fmt.Sprintf("%s was changed, and should be as before", table))
		}
	}
	return changed, nil
}
