package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// readLimit reads the backlog in keyset pages and does nothing else: no program that looks at every
// event from outside can be faster.
type readLimit struct {
	*env
	name    string
	payload bool
	read    int
	ordered bool
}

const readPage = 5000

func (c *readLimit) Name() string                    { return c.name }
func (c *readLimit) Setup(ctx context.Context) error { return c.backlog.seed(ctx, c.events, 4) }
func (c *readLimit) Clean(context.Context) error     { return nil }

func (c *readLimit) Run(ctx context.Context) (int, error) {
	var (
		seq         int64
		eventID     [16]byte
		domain, typ string
		key         *string
		payload     []byte
	)
	columns, into := "seq, event_id, domain, type, key", []any{&seq, &eventID, &domain, &typ, &key}
	if c.payload {
		columns, into = columns+", payload", append(into, &payload)
	}
	query := "select " + columns + " from tidemark.outbox where seq > $1 order by seq limit $2"

	c.read, c.ordered = 0, true
	var last int64
	for {
		rows, err := c.conn.Query(ctx, query, last, readPage)
		if err != nil {
			return 0, err
		}
		tag, err := pgx.ForEachRow(rows, into, func() error {
			c.ordered = c.ordered && seq > last
			last = seq
			return nil
		})
		if err != nil {
			return 0, err
		}
		c.read += int(tag.RowsAffected())
		if tag.RowsAffected() < readPage {
			return c.read, nil
		}
	}
}

func (c *readLimit) Check(context.Context) error {
	if c.read != c.events || !c.ordered {
		return fmt.Errorf("read %d events of %d, in order: %t", c.read, c.events, c.ordered)
	}
	return nil
}
