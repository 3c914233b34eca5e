package store

import (
	"context"
	"fmt"

	"github.com/tidemarkhq/tidemark"
)

// Migrations is how many files sql/migrations has. A constant, so that a program with handlers does not carry all SQL
// with it; TestMigrationsOfTheLibrary holds it.
const Migrations = 117

// CheckSchema is migrate.Check for programs that carry no SQL: the schema may be newer, unless a migration that this
// build does not know is marked as breaking; it may not be older.
func CheckSchema(ctx context.Context, db Querier) error {
	var there bool
	if err := db.QueryRow(ctx, `select to_regclass('tidemark.migration') is not null`).Scan(&there); err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w: nothing is installed; run: tidemark migrate up", tidemark.ErrSchema)
	}
	var ran int
	var breaking *string
	err := db.QueryRow(ctx, `select count(*), min(to_char(m.version, 'FM0000_') || m.name) filter (where m.breaking and m.version > $1)
		from tidemark.migration m`, Migrations).Scan(&ran, &breaking)
	switch {
	case err != nil:
		return err
	case ran < Migrations:
		return fmt.Errorf("%w: %d of the %d migrations that it needs have run; run: tidemark migrate up", tidemark.ErrSchema, ran, Migrations)
	case breaking != nil:
		return fmt.Errorf("%w: migration %s needs a newer version of the module", tidemark.ErrSchema, *breaking)
	}
	return nil
}
