// Package tidemark is the Go side of Tidemark, which makes a PostgreSQL database
// a dependable event backbone. The database holds the product, in the schema tidemark.
//
// [Emit] and [EmitMany] store events in the caller's transaction. A [Client] runs handlers
// inside the program: each event, or each page of a table's rows, is handled in a
// transaction that also records that it was. An [Error] is what the database refused.
package tidemark
