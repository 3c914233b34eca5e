package main

import (
	"context"
)

// passes calls a function of the database, each call a transaction, until it has nothing to do,
// and returns how many items it worked off.
func (e *env) passes(ctx context.Context, query string, args ...any) (items int, err error) {
	for {
		n, err := e.count(ctx, query, args...)
		if err != nil || n == 0 {
			return items, err
		}
		items += n
	}
}
