// Package loopback keeps unencrypted passwords on this host, and other sites' pages away from its servers.
package loopback

import (
	"errors"
	"fmt"
	"net"
)

// Only closes a connection to another host, and returns an error: a password would travel on it without encryption. It
// looks at the address of the connection, not at the name that led there.
func Only(conn net.Conn) error {
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		return nil
	}
	return errors.Join(fmt.Errorf("the password would travel without encryption to another host, %s: use TLS, or allow it", conn.RemoteAddr()), conn.Close())
}
