// Package consumer runs handlers inside a Go program: a [Client] handles each event, or each page of a table's rows,
// in a transaction that also records that it was handled.
package consumer
