package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestTell(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	m, err := Find(func(key string) string { return map[string]string{"NOTIFY_SOCKET": name}[key] })
	if err != nil || m.Watchdog != 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	if err := m.Tell(Ready); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 64)
	n, err := socket.Read(got)
	if err != nil || string(got[:n]) != "READY=1" {
		t.Errorf("%q, %v", got[:n], err)
	}
	_ = socket.Close()
	if err := m.Tell(Ready); err == nil {
		t.Error("told a manager that does not listen")
	}
	if err := (Manager{}).Tell(Ready); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	own := strconv.Itoa(os.Getpid())
	for _, test := range []struct {
		socket, usec, pid string
		want              time.Duration
		fails             bool
	}{
		{usec: "60000000"},
		{socket: "/run/n", usec: "60000000", want: time.Minute},
		{socket: "/run/n", usec: "60000000", pid: own, want: time.Minute},
		{socket: "/run/n", usec: "60000000", pid: own + "0"}, // of the parent, which handed its environment down
		{socket: "/run/n", usec: "soon", fails: true},
		{socket: "/run/n", usec: "-1", fails: true},
	} {
		m, err := Find(func(key string) string {
			return map[string]string{"NOTIFY_SOCKET": test.socket, "WATCHDOG_USEC": test.usec, "WATCHDOG_PID": test.pid}[key]
		})
		if m.Watchdog != test.want || (err != nil) != test.fails {
			t.Errorf("%+v: %+v, %v", test, m, err)
		}
	}
}
