package nats_test

import (
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
	leave(a, "a1")
	hears(a)
	b := marks()
	leave(b, "b1")
	leave(a, "a2")
	hears(a, "b1")
	hears(b, "a2")
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
	if err := m.Leave(t.Context(), "a1"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Heard(t.Context()); err == nil {
		t.Error("a mark that was refused is taken for one that was left")
	}
}
