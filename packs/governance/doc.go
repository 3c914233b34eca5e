// Package governance is the pack of the five governance workers: install.sql, and the tests that hold it to its source.
// A program installs it with tidemark pack install governance.
package governance
