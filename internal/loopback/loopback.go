// Package loopback keeps what must not be seen on the way on this host.
package loopback

import (
	"errors"
	"fmt"
	"net"
)

// Only closes a connection to another host, whatever name or server led there, and says so: a password would travel on it
// without encryption.
func Only(conn net.Conn) error {
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		return nil
	}
	return errors.Join(fmt.Errorf("the password would travel without encryption to another host, %s: use TLS, or allow it", conn.RemoteAddr()), conn.Close())
}
