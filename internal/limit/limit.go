// Package limit holds the bounds that the daemon's configuration and the library share with the SQL.
package limit

import "time"

// The lease of a worker. Below the lower bound a slow commit costs it; above the upper one its successor waits too long.
const (
	MinLease = 3 * time.Second
	MaxLease = time.Hour
)
