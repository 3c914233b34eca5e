// Package systemd tells the service manager how a program is, by the protocol of sd_notify(3).
package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// The states that a Manager is told.
const (
	Ready     = "READY=1"
	Reloading = "RELOADING=1" // until Ready
	Stopping  = "STOPPING=1"
	Alive     = "WATCHDOG=1"
)

// Manager is the service manager that started this program. The zero value is none.
type Manager struct {
	socket string

	// Watchdog is the time after which the manager kills a program that has not told it that it is alive. 0: it does not.
	Watchdog time.Duration
}

// Find returns the manager that the environment names (os.Getenv).
func Find(getenv func(string) string) (Manager, error) {
	m := Manager{socket: getenv("NOTIFY_SOCKET")}
	usec, pid := getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID")
	if m.socket == "" || usec == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m, nil
	}
	n, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || n <= 0 {
		return m, fmt.Errorf("WATCHDOG_USEC=%q is not a number of microseconds", usec)
	}
	m.Watchdog = time.Duration(n) * time.Microsecond
	return m, nil
}

// Tell sends a state. It connects each time, as a manager that was restarted has another socket by the same name.
func (m Manager) Tell(state string) error {
	if m.socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
}
