package signin

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/api"
)

// A client that closes its side of the connection once it has asked, and reads the answer, is recorded like others.
func TestHalfClosedClientsAreNoted(t *testing.T) {
	t.Parallel()
	d := newDoor(t, Options{Users: map[string]User{"ada": {hash(t, "right horse"), api.Admin}}})
	noted := d.signIn.Note
	d.signIn.Note = func(ctx context.Context, person, outcome, detail string) error {
		select {
		case <-ctx.Done(): // as a query that is cancelled
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
			return noted(ctx, person, outcome, detail)
		}
	}
	for password, want := range map[string]string{"guess": "ada refused", "right horse": "ada signed in"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(d.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		form := "name=ada&password=" + strings.ReplaceAll(password, " ", "+")
		fmt.Fprintf(conn, "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", len(form), form)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if !strings.Contains(d.noted(), want) {
			t.Errorf("it is not noted that %s; the client was answered %.40q", want, answer)
		}
	}
}
