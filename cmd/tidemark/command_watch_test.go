package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// command watch prints each result once, in the order of numbers, also one whose number is taken before and committed later.
func TestCommandWatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := tidemarktest.NewDB(t)
	emit := func(key string) string {
		return fmt.Sprintf(`select tidemark.emit_strict('commands', 'result.shop', jsonb_build_object('service', 'shop', 'command', 'make', 'command_version', 1,
			'status', 'processed', 'idempotency_key', %[1]s, 'processed_at', '2026-01-31T12:00:00Z'), key => %[1]s)`, "'"+key+"'")
	}
	for _, sql := range []string{
		`select tidemark.domain_set('commands')`, `select tidemark.type_set('commands', 'result.shop'), tidemark.type_set('commands', 'result.other')`,
		`insert into tidemark.service (service, role) values ('shop', 'nobody')`, emit("a"),
	} {
		if _, err := db.Pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	late, err := db.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = late.Rollback(ctx) })
	if _, err := late.Exec(ctx, emit("late")); err != nil {
		t.Fatal(err)
	}
	c := program(t, db.URL, "command", "watch", "--service", "shop", "--since", "1h")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	want := func(key string) {
		t.Helper()
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasSuffix(line, "  processed         shop.make/v1  "+key+"\n") {
			t.Fatalf("%q, want %s: %v", line, key, err)
		}
	}
	want("a")
	if _, err := db.Pool.Exec(ctx, emit("b")); err != nil {
		t.Fatal(err)
	}
	want("b")
	if err := late.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	want("late")
	if _, err := db.Pool.Exec(ctx, strings.Replace(emit("no"), "result.shop", "result.other", 1)+`; `+emit("c")); err != nil {
		t.Fatal(err)
	}
	want("c")
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("%s %v", rest, err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
