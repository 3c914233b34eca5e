package main

import (
	"bufio"
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CA1: attach waits for a table that is being written, and names its writer.
func TestAttachToABusyTable(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	for _, sql := range []string{
		`create table orders (id int primary key)`,
		`select tidemark.inbound_route_set('new', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "a", "type": "b"}')`,
	} {
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	writer := db.Connect(t)
	if _, err := writer.Exec(t.Context(), `set application_name = 'nightly load'; begin; insert into orders values (1)`); err != nil {
		t.Fatal(err)
	}

	attach := program(t, db.URL, "capture", "attach", "orders", "--reason", "test")
	var out bytes.Buffer
	attach.Stdout = &out
	remarks, err := attach.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := attach.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(remarks).ReadString('\n')
	want := regexp.MustCompile(`^tidemark: the table is busy, held by pid \d+, application "nightly load", user \w+, in its transaction for [0-9:]+; trying again\n$`)
	if err != nil || !want.MatchString(said) {
		t.Errorf("it says %q (%v)", said, err)
	}
	if _, err := writer.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if err := attach.Wait(); err != nil || !strings.HasSuffix(out.String(), "orders: attached\n") {
		t.Error(err, out.String())
	}
}
