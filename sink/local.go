package sink

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
)

// CodeLocal is the code of results with Result.Local.
const CodeLocal = "local"

// CodeCopy is the code of results with Result.Refused of a target that says that another copy of the database delivers to it.
const CodeCopy = "copy"

// IsLocal reports whether a connection failed because this host lacks file descriptors, memory or buffers. Then the result of
// the delivery is [Retry] with Local.
func IsLocal(err error) bool {
	var dns *net.DNSError
	lacks := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS}
	return slices.ContainsFunc(lacks, func(lack syscall.Errno) bool {
		// A DNS error wraps no cause, so only its text can be compared.
		return errors.Is(err, lack) || errors.As(err, &dns) && strings.HasSuffix(dns.Err, lack.Error())
	})
}
