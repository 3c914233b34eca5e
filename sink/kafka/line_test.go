package kafka

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
)

// ends returns a line, its end of a connection, and the requests that the broker reads at the other end.
func ends(t *testing.T) (l *line, near net.Conn, read chan string) {
	t.Helper()
	var far net.Conn
	l = newLine(func(context.Context, string, string) (conn net.Conn, err error) {
		conn, far = net.Pipe()
		return conn, nil
	})
	near, err := l.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	read = make(chan string, 9)
	go func() {
		defer close(read)
		for b := make([]byte, 99); ; {
			n, err := far.Read(b)
			if err != nil {
				return
			}
			read <- string(b[:n])
		}
	}()
	t.Cleanup(func() { _ = near.Close() })
	return l, near, read
}

const (
	produce  = "\x00\x00\x00\x05\x00\x00p"
	metadata = "\x00\x00\x00\x05\x00\x03m"
)

func write(near net.Conn, request string) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(near, request)
		done <- err
	}()
	return done
}

func TestLineHoldsRecords(t *testing.T) {
	t.Parallel()
	l, near, read := ends(t)
	l.hold()
	done := write(near, produce)
	if err := <-write(near, metadata); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != metadata {
		t.Fatalf("%q passed", got)
	}
	l.release()
	if got := <-read; got != produce {
		t.Errorf("got %q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if left, _ := l.cut(); !left {
		t.Error("records were sent, and left is false")
	}
}

func TestLineIsCut(t *testing.T) {
	t.Parallel()
	l, near, read := ends(t)
	l.hold()
	done := write(near, produce)
	if left, _ := l.cut(); left {
		t.Error("nothing left")
	}
	if err := <-done; !errors.Is(err, errCut) {
		t.Errorf("got %v", err)
	}
	l.release()
	if err := <-write(near, produce); !errors.Is(err, errCut) {
		t.Errorf("got %v", err)
	}
	for got := range read {
		t.Errorf("%q passed", got)
	}
	if _, err := l.dial(t.Context(), "", ""); !errors.Is(err, errCut) {
		t.Errorf("dialled again: %v", err)
	}
}
