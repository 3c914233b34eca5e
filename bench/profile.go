package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"

	"github.com/jackc/pgx/v5"
)

var notName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// profilingSettings let the private cluster time every statement, those inside functions too.
var profilingSettings = map[string]string{
	"shared_preload_libraries":          "pg_stat_statements",
	"pg_stat_statements.track":          "all",
	"pg_stat_statements.track_planning": "on",
	"track_io_timing":                   "on",
	"track_functions":                   "all",
}

// profileRun begins a CPU profile and the statistics of statements for one run, where they are
// wanted; those of the last round stay.
func (e *env) profileRun(ctx context.Context, name string) (stop func() error, err error) {
	if e.profiles == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(e.profiles, 0o750); err != nil {
		return nil, err
	}
	path := filepath.Join(e.profiles, fmt.Sprintf("w%s-%s", e.workload, notName.ReplaceAllString(name, "-")))
	f, err := os.Create(path + ".pprof")
	if err != nil {
		return nil, err
	}
	if err := e.exec(ctx, "create extension if not exists pg_stat_statements; select pg_stat_statements_reset(), pg_stat_reset()"); err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			return err
		}
		return e.writeStatements(ctx, path+".sql.txt")
	}, nil
}

func (e *env) writeStatements(ctx context.Context, path string) error {
	rows, _ := e.conn.Query(ctx, `
		select format('%10s ms %9s calls %9s ms each %9s at least %8s plans %8s ms planning %8s rows %8s kB wal %s %s', round(total_exec_time)::text, calls,
		              round(mean_exec_time::numeric, 4), round(min_exec_time::numeric, 4), plans, round(total_plan_time)::text, rows, (wal_bytes / 1024)::bigint,
		              case when toplevel then 'top' else '   ' end, left(regexp_replace(query, '\s+', ' ', 'g'), 260))
		  from pg_stat_statements s join pg_database d on d.oid = s.dbid and d.datname = current_database()
		 order by total_exec_time desc limit 60`)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	rows, _ = e.conn.Query(ctx, `
		select format('%10s ms self %9s calls %9s ms self each %s', round(self_time)::text, calls, round((self_time / greatest(calls, 1))::numeric, 4), funcname)
		  from pg_stat_user_functions where calls > 0 order by self_time desc limit 60`)
	functions, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	lines = append(lines, functions...)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(f, line)
	}
	return f.Close()
}
