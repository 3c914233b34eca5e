package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// progress says every few seconds how far the receivers are.
func (h *harness) progress(ctx context.Context) {
	for trial.Wait(ctx, 5*time.Second) == nil {
		var list []string
		for _, route := range []string{healthy, flaky, plain} {
			list = append(list, fmt.Sprintf("%s %d", route, h.receivers[route].distinct()))
		}
		h.say("acknowledged %d, %s", h.acknowledged.Load(), strings.Join(list, ", "))
		long, err := askOnce(ctx, h, pgx.RowTo[string], `
			select format('a daemon is %s s in: %s (%s)', extract(epoch from clock_timestamp() - query_start), left(query, 60),
			              coalesce(wait_event_type || ' ' || wait_event, 'no wait'))
			from pg_stat_activity where usename = 'chaos_daemon' and state <> 'idle' and query_start < clock_timestamp() - interval '1 second'`)
		for _, line := range long {
			h.say("%s", line)
		}
		if err != nil {
			h.say("the database does not answer: %v", err)
		}
	}
}
