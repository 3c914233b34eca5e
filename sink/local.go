package sink

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
)

// CodeLocal is the code of results with Local.
const CodeLocal = "local"

// IsLocal reports whether err, of a connection in the making, says that this host lacks files, memory or buffers, and not
// that the target is away. Such a delivery is [Retry] with Local.
func IsLocal(err error) bool {
	var dns *net.DNSError
	lacks := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS}
	return slices.ContainsFunc(lacks, func(lack syscall.Errno) bool {
		// The error of a name has no cause, only its words.
		return errors.Is(err, lack) || errors.As(err, &dns) && strings.HasSuffix(dns.Err, lack.Error())
	})
}
