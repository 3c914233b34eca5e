package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// writers is a pgbench run of one script.
type writers struct {
	*env
	name    string
	script  string
	rows    map[string]int // rows that one transaction adds, per table
	clients int            // how many at once; 0: 8
	rate    int            // transactions a second; 0: as many as they can
	done    int
}

//go:embed pgbench/*.sql
var scripts embed.FS

// The payload has 200 bytes; jsonb keeps its keys by length.
var (
	eventPayload  = `{"id": 1234567890, "pad": "` + strings.Repeat("x", 200-29) + `"}`
	eventPayloads = "[" + strings.TrimSuffix(strings.Repeat(
		`{"domain": "bench", "type": "type.0", "key": "key.0", "payload": `+eventPayload+`},`, many), ",") + "]"
)

func (c *writers) Name() string { return c.name }

func (c *writers) Setup(ctx context.Context) error {
	if c.pgbench == "" {
		return skipped("pgbench is not on the path")
	}
	return c.empty(ctx)
}

// empty starts each run with empty tables. The log defends itself against that, except in the
// role of a replica.
func (c *writers) empty(ctx context.Context) error {
	return c.exec(ctx, `
		set session_replication_role = replica;
		truncate bench.orders, bench.captured_orders, bench.triggered_orders, bench.logged_orders, bench.plain_outbox, tidemark.outbox restart identity;
		reset session_replication_role`)
}

var (
	processed = regexp.MustCompile(`transactions actually processed: (\d+)`)
	failed    = regexp.MustCompile(`number of failed transactions: ([1-9]\d*)`)
)

func (c *writers) Run(ctx context.Context) (int, error) {
	dir, err := os.MkdirTemp("", "tidemark-bench")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	script, err := scripts.ReadFile("pgbench/" + c.script)
	if err != nil {
		return 0, err
	}
	file := filepath.Join(dir, c.script)
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return 0, err
	}
	length := "--time=" + strconv.Itoa(int(c.duration.Seconds()))
	if c.check {
		length = "--transactions=20"
	}
	args := []string{
		"--no-vacuum", "--protocol=prepared", "--client=" + strconv.Itoa(cmp.Or(c.clients, 8)), "--jobs=2", length,
		"--define=payload=" + eventPayload, "--define=payloads=" + eventPayloads, "--file=" + file,
	}
	if c.rate != 0 {
		args = append(args, "--rate="+strconv.Itoa(c.rate))
	}
	cmd := exec.CommandContext(ctx, c.pgbench, append(args, c.dsn)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	if failed.Match(out) {
		return 0, fmt.Errorf("pgbench: transactions failed: %s", out)
	}
	m := processed.FindSubmatch(out)
	if m == nil {
		return 0, errors.New("pgbench: no number of transactions in: " + string(out))
	}
	c.done, err = strconv.Atoi(string(m[1]))
	return c.done, err
}

func (c *writers) Check(ctx context.Context) error {
	for table, n := range c.rows {
		if err := c.expect(ctx, "rows of "+table, n*c.done, "select count(*) from "+table); err != nil {
			return err
		}
	}
	return nil
}

func (c *writers) Clean(ctx context.Context) error { return c.empty(ctx) }
