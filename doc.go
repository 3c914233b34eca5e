// Package tidemark is the Go side of Tidemark, which makes a PostgreSQL database
// a dependable event and command backbone. The database holds the product, in the
// schema tidemark; this package names its events and its errors.
package tidemark
