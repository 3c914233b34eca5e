// Package test holds the tests of Tidemark's SQL, which run on a real PostgreSQL. The name of a file begins with its
// subject: a folder of sql/code, or "install" (a fresh installation, roles, upgrades, restored copies), "catalog" (rules
// for all objects, and the reference page) or "state" (the state machine of the cursor and the lease).
// internal/oracle is the decision contract in Go, against which the contract in SQL is checked.
package test
