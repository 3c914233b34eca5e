// Package tidemark is the Go side of Tidemark, which makes a PostgreSQL database
// a dependable event backbone. The database holds the product, in the schema tidemark.
//
// [Emit] and [EmitMany] store events in the caller's transaction. An [Error] is what the database refused. Package
// [github.com/tidemarkhq/tidemark/consumer] runs handlers inside a program.
package tidemark
