package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// IsSafeHost tells whether the host of a request (its header Host) is an address or localhost. Any other name could be a stranger's,
// whose DNS points to this host: the browser of someone here takes the server for that page's own (DNS rebinding).
func IsSafeHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}
