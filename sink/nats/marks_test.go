package nats_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	tidemarknats "github.com/tidemarkhq/tidemark/sink/nats"
)

// Two connections hear each other's marks, and not their own.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const place = "tidemark-copies-1-2"
	marks := func() *tidemarknats.Marks {
		m, err := dial(t, tidemarknats.Options{Servers: []string{s.ClientURL()}}).Marks(place)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	leave := func(m *tidemarknats.Marks, mark string) {
		t.Helper()
		if err := m.Leave(t.Context(), mark); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(m *tidemarknats.Marks, want ...string) {
		t.Helper()
		var heard []string
		for deadline := time.Now().Add(soon); ; {
			some, err := m.Heard(t.Context())
			heard = append(heard, some...)
			if err == nil && slices.Equal(heard, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("heard %v, %v, want %v", heard, err, want)
			}
		}
	}
	a := marks()
	leave(a, text("a1"))
	hears(a)
	b := marks()
	leave(b, text("b1"))
	leave(a, text("a2"))
	hears(a, text("b1"))
	hears(b, text("a2"))
}

// Where the user may not publish the marks, the connection says so, and delivers.
func TestMarksAreForbidden(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "tm", Password: "secret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{subject}}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}}
	})
	m, err := dial(t, tidemarknats.Options{Servers: []string{s.ClientURL()}, User: "tm", Password: "secret"}).Marks("tidemark-copies-1-2")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Leave(t.Context(), text("a1")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Heard(t.Context()); err == nil {
		t.Error("a mark that was refused is taken for one that was left")
	}
}

// text makes a mark of a short name.
func text(name string) string { return "00000000-0000-4000-8000-0000000000" + name }

// Others may publish there too. What is no mark is dropped, and of too many marks the first few are heard.
func TestMarksOfForgers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const place = "tidemark-copies-1-2"
	forger := client(t, s).Conn()
	for name, c := range map[string]struct {
		before, after [][]byte
		most          int
	}{
		"no marks":    {before: noMarks(), after: noMarks(), most: 1},
		"many marks":  {after: manyMarks(2000), most: 10},
		"one mark":    {after: slices.Repeat(manyMarks(1), 2000), most: 2},
		"large marks": {before: slices.Repeat([][]byte{bytes.Repeat([]byte("a"), 1<<20)}, 3), after: noMarks(), most: 1},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := dial(t, tidemarknats.Options{Servers: []string{s.ClientURL()}}).Marks(place)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Leave(t.Context(), text("a1")); err != nil { // it listens
				t.Fatal(err)
			}
			for _, forged := range slices.Concat(c.before, [][]byte{[]byte(text("b1"))}, c.after) {
				if err := forger.Publish(place, forged); err != nil {
					t.Fatal(err)
				}
			}
			if err := forger.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := m.Leave(t.Context(), text("a2")); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(soon); !m.Back(); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the own mark does not come back")
				}
			}
			heard, err := m.Heard(t.Context())
			if err != nil || len(heard) == 0 || len(heard) > c.most || heard[0] != text("b1") {
				t.Errorf("heard %.500q, %v", heard, err)
			}
		})
	}
}

func noMarks() [][]byte {
	return [][]byte{nil, []byte("\x00"), []byte("\xff\xfe"), []byte("mark"), []byte("\x00" + text("b2")[1:]), append([]byte(text("b2")), '\n'), bytes.Repeat([]byte("a"), 1<<20)}
}

func manyMarks(n int) (all [][]byte) {
	for i := range n {
		all = append(all, fmt.Appendf(nil, "00000000-0000-4000-9000-%012d", i))
	}
	return all
}
