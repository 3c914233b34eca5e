package main

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// silentServer completes the handshake of each connection, and then says nothing. It returns its address.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { listener.Close() })
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				backend := pgproto3.NewBackend(conn, conn)
				if _, err := backend.ReceiveStartupMessage(); err != nil {
					return
				}
				backend.Send(&pgproto3.AuthenticationOk{})
				backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
				backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				_ = backend.Flush()
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	return listener.Addr().String()
}

// A server that accepts connections and says nothing does not hang a watchdog: the state is unknown.
func TestWatchdogsDoNotHang(t *testing.T) {
	t.Parallel()
	url := "postgres://u@" + silentServer(t) + "/x?sslmode=disable"
	var all sync.WaitGroup // at the same time: each takes 30 s
	for _, command := range []string{"status", "doctor", "status --watch"} {
		c := program(t, url, strings.Fields(command)...)
		all.Go(func() {
			hangs := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
			defer hangs.Stop()
			out, _ := c.CombinedOutput()
			if status := c.ProcessState.ExitCode(); status != 2 || string(out) != "tidemark: the database has not answered within 30s\n" {
				t.Errorf("%s: status %d: %s", command, status, out)
			}
		})
	}
	all.Wait()
}
