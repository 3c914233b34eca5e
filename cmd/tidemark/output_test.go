package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Where only the output fails, the command says that the rest was done: to repeat it would do it twice.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err) // not on macOS
	}
	defer full.Close()
	db := tidemarktest.NewDB(t)
	answer(t, db, `select tidemark.type_set('shop', 'order')::text`)
	var said bytes.Buffer
	c := program(t, db.URL, "emit", "--domain", "shop", "--type", "order")
	c.Stdout, c.Stderr = full, &said
	if err := c.Run(); err == nil || c.ProcessState.ExitCode() != 1 {
		t.Error(err)
	}
	want := "tidemark: the output cannot be written: write /dev/stdout: no space left on device\nhint: The command itself was done.\n"
	if said.String() != want {
		t.Errorf("%q, want %q", said.String(), want)
	}
	if n := answer(t, db, `select count(*)::text from tidemark.outbox where domain = 'shop'`); n != "1" {
		t.Errorf("%s events", n)
	}
}
