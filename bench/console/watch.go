package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// looks are what a daemon asks for by itself: how often, and by which statement.
var looks = []struct {
	name, sql string
	every     time.Duration
}{
	{"the watch", `select count(*) from tidemark.watch('bench', false), tidemark.letters_unlogged(1000)`, 10 * time.Second},
	{"silent executors", `select count(*) from tidemark.stale_check()`, 10 * time.Second},
	{"upkeep", `select count(*) from tidemark.maintain()`, time.Minute},
}

// quiet is an installation of as many routes and workers in which nothing is wrong.
const quiet = `delete from tidemark.pending; delete from tidemark.dead_letter; delete from tidemark.attempt; vacuum analyze`

// watch measures what it costs to look after an installation: of the processors, in the server. The first looks, which plan the
// statements, do not count.
func watch(ctx context.Context, pool *pgxpool.Pool, counted *counter, title string) error {
	fmt.Printf("\n| %s | every | CPU ms | %% of a core |\n|---|---|---|---|\n", title)
	const first, rounds = 6, 20
	sum := 0.0
	for _, look := range looks {
		var used time.Duration
		for round := range first + rounds {
			if err := beat(ctx, pool); err != nil {
				return err
			}
			before := counted.cpu()
			if _, err := pool.Exec(ctx, look.sql); err != nil {
				return err
			}
			if round >= first {
				used += counted.cpu() - before
			}
		}
		each := used / rounds
		share := each.Seconds() / look.every.Seconds() * 100
		sum += share
		fmt.Printf("| %s | %s | %.0f | %.2f |\n", look.name, look.every, each.Seconds()*1000, share)
	}
	fmt.Printf("| all | | | %.2f |\n", sum)
	return nil
}
