package store

import (
	"context"
	"time"

	"github.com/tidemarkhq/tidemark"
)

// Pack is a pack that was installed.
type Pack struct {
	Pack        string    `db:"pack" json:"pack"`
	Version     string    `db:"version" json:"version"`
	Checksum    string    `db:"checksum" json:"checksum"` // SHA-256 of its SQL, in hex
	InstalledAt time.Time `db:"installed_at" json:"installed_at"`
	InstalledBy string    `db:"installed_by" json:"installed_by"`
}

// Packs returns the packs that were installed.
func (db *DB) Packs(ctx context.Context) ([]Pack, error) {
	return list[Pack](ctx, db, `select p.pack, p.version, p.checksum, p.installed_at, p.installed_by from tidemark.pack p order by p.pack`)
}

// RolePrefix is the prefix of the names of Tidemark's roles in this database.
func (db *DB) RolePrefix(ctx context.Context) (string, error) {
	return value[string](ctx, db, `select regexp_replace(pg_get_userbyid(n.nspowner)::text, 'tidemark_owner$', '') from pg_namespace n
		where n.nspname = 'tidemark'`)
}

// InstallPack runs the SQL of a pack and records it. It wants a transaction.
func (db *DB) InstallPack(ctx context.Context, name, version, checksum, sql string) (Pack, error) {
	// Recorded first: the row is what a second installer waits for, who would else insert what neither sees yet. Not an
	// advisory lock, which any login could hold.
	if _, err := db.querier.Exec(ctx, `set local lock_timeout = '60s'; set local standard_conforming_strings = on`); err != nil {
		return Pack{}, err
	}
	pack, err := one[Pack](ctx, db, `insert into tidemark.pack as p (pack, version, checksum) values ($1, $2, $3)
		on conflict (pack) do update set version = excluded.version, checksum = excluded.checksum,
			installed_at = clock_timestamp(), installed_by = session_user
		returning p.pack, p.version, p.checksum, p.installed_at, p.installed_by`, name, version, checksum)
	if err != nil {
		return Pack{}, err
	}
	if _, err := db.querier.Exec(ctx, sql); err != nil {
		return Pack{}, tidemark.AsError(err)
	}
	return pack, nil
}
