package test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// A messenger sends several transactions as one message. The server stops between two of them, since it can send its
// answers nowhere: there now() of the next one is past, and no transaction is shown.
type messenger struct {
	session session
	answer  *pgconn.MultiResultReader // unread: the message is under way
	sent    int
}

func (g *messenger) step(m *machine) step {
	if g.answer == nil {
		return step{"", "a message of several transactions is sent", 1, func() { g.send(m) }}
	}
	return step{"", "the message goes on to its last transaction", 4, func() {
		g.end(m)
		i := &item{state: committed}
		if err := m.eye.QueryRow(context.Background(), `select id::text, id, born_at from births where key = $1`, g.key()).Scan(&i.id, &i.number, &i.at); err != nil {
			m.t.Fatal(err)
		}
		m.model.items[i.id] = i
	}}
}

func (g *messenger) key() string { return fmt.Sprintf("message %d", g.sent) }

func (g *messenger) send(m *machine) {
	watch := session{m.t, "eye", m.eye}
	if g.session.conn == nil {
		g.session = overSocket(m.t, watch, nil)
	}
	g.sent++
	g.answer = g.session.stopBetween(watch, fmt.Sprintf("begin; insert into births (born_at, key) values (now(), '%s'); commit", g.key()))
}

// end reads the answers, so that the message comes to its end.
func (g *messenger) end(m *machine) {
	if g.answer == nil {
		return
	}
	if err := g.answer.Close(); err != nil {
		m.t.Fatal(err)
	}
	g.answer = nil
}
