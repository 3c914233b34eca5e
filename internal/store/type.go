package store

import (
	"context"
	"encoding/json"

	"github.com/tidemarkhq/tidemark"
)

// EventType is a registered event type.
type EventType struct {
	Domain      string          `db:"domain" json:"domain"`
	Type        string          `db:"type" json:"type"`
	Version     int             `db:"version" json:"version"`
	Enabled     bool            `db:"enabled" json:"enabled"`
	Schema      json.RawMessage `db:"schema" json:"schema"`                         // null: any object
	Unchecked   []string        `db:"unchecked_keywords" json:"unchecked_keywords"` // those that SQL does not check
	Description string          `db:"description" json:"description"`
}

const eventType = `select t.domain, t.type, t.version, t.enabled, t.schema, tidemark.schema_unchecked(t.schema) as unchecked_keywords,
	t.description from `

// EventTypes returns the registry of event types, or the part of one domain. A part goes on after DOMAIN/TYPE: types may have slashes,
// and domains have none.
func (db *DB) EventTypes(ctx context.Context, domain string, p Part) ([]EventType, error) {
	return list[EventType](ctx, db, eventType+`tidemark.event_type t where ($1 = '' or t.domain = $1)
		and ($2 = '' or (t.domain, t.type) > (split_part($2, '/', 1), substr($2, strpos($2, '/') + 1)))
		order by t.domain, t.type limit nullif($3::integer, 0)`, domain, p.After, p.Limit)
}

// EventType returns one event type, or tidemark.ErrNotFound.
func (db *DB) EventType(ctx context.Context, domain, name string) (EventType, error) {
	t, err := one[EventType](ctx, db, eventType+`tidemark.event_type t where t.domain = $1 and t.type = $2`, domain, name)
	return known(t, err, "event type "+domain+"/"+name, "Types: tidemark type list")
}

// Changes names columns of a configuration row, with their new values; nil is null.
type Changes map[string]any

// UnmarshalJSON keeps each value as it is written: a float64 rounds long numbers.
func (c *Changes) UnmarshalJSON(text []byte) error {
	var written map[string]json.RawMessage
	if err := json.Unmarshal(text, &written); err != nil {
		return err
	}
	*c = Changes{}
	for column, value := range written {
		(*c)[column] = value
	}
	return nil
}

// TypeSet calls tidemark.type_set.
func (db *DB) TypeSet(ctx context.Context, domain, name string, changes Changes, reason string) (EventType, error) {
	return one[EventType](ctx, db, eventType+`tidemark.type_set($1, $2, coalesce($3::jsonb, '{}'), nullif($4, '')) t`, domain, name, changes, reason)
}

// TypeDelete calls tidemark.type_delete.
func (db *DB) TypeDelete(ctx context.Context, domain, name, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.type_delete($1, $2, $3)`, domain, name, reason)
	return tidemark.AsError(err)
}

// Domain is a namespace of event types.
type Domain struct {
	Domain       string   `db:"domain" json:"domain"`
	MetadataOnly bool     `db:"metadata_only" json:"metadata_only"`
	Restricted   bool     `db:"restricted" json:"restricted"` // only Emitters emit, and Tidemark
	Emitters     []string `db:"emitters" json:"emitters"`     // roles to which it is granted
	Types        int      `db:"types" json:"types"`           // event types in it
	Description  string   `db:"description" json:"description"`

	PayloadRetention *string `db:"payload_retention" json:"payload_retention"` // interval; null: as long as the event
}

const domain = `select d.domain, d.metadata_only, d.restricted,
	array(select e.role from tidemark.domain_emitter e where e.domain = d.domain order by e.role) as emitters,
	(select count(*)::integer from tidemark.event_type t where t.domain = d.domain) as types, d.description,
	d.payload_retention::text from `

// Domains returns all domains.
func (db *DB) Domains(ctx context.Context) ([]Domain, error) {
	return list[Domain](ctx, db, domain+`tidemark.domain d order by d.domain`)
}

// DomainSet calls tidemark.domain_set.
func (db *DB) DomainSet(ctx context.Context, name string, changes Changes, reason string) (Domain, error) {
	return one[Domain](ctx, db, domain+`tidemark.domain_set($1, coalesce($2::jsonb, '{}'), nullif($3, '')) d`, name, changes, reason)
}

// DomainDelete calls tidemark.domain_delete.
func (db *DB) DomainDelete(ctx context.Context, name, reason string) error {
	_, err := db.querier.Exec(ctx, `select tidemark.domain_delete($1, $2)`, name, reason)
	return tidemark.AsError(err)
}

// DomainGrant calls tidemark.domain_grant.
func (db *DB) DomainGrant(ctx context.Context, name, role, reason string) (Domain, error) {
	// In two statements: the one that grants does not see its own row.
	if _, err := value[string](ctx, db, `select d.domain from tidemark.domain_grant($1, $2, nullif($3, '')) d`, name, role, reason); err != nil {
		return Domain{}, err
	}
	return db.domain(ctx, name)
}

// DomainRevoke calls tidemark.domain_revoke.
func (db *DB) DomainRevoke(ctx context.Context, name, role, reason string) (Domain, error) {
	if _, err := value[string](ctx, db, `select d.domain from tidemark.domain_revoke($1, $2, nullif($3, '')) d`, name, role, reason); err != nil {
		return Domain{}, err
	}
	return db.domain(ctx, name)
}

func (db *DB) domain(ctx context.Context, name string) (Domain, error) {
	return one[Domain](ctx, db, domain+`tidemark.domain d where d.domain = $1`, name)
}
