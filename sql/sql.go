// Package sql holds Tidemark's SQL: tables in migrations/, which run once, and functions, triggers and
// views in code/, one per file, which are re-created when they change. Package migrate applies both, and the
// statements of roles.sql before them.
package sql

import "embed"

// Files holds migrations/*.sql and code/*.sql.
//
//go:embed migrations/*.sql code/*.sql
var Files embed.FS

// Roles is a query for the statements that make Tidemark's roles, with their state in the database.
//
//go:embed roles.sql
var Roles string
