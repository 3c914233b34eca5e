package sink_test

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
)

func TestIsLocal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err   error
		local bool
	}{
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}, true},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENFILE)}, true},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENOBUFS)}, true},
		{os.NewSyscallError("connect", syscall.ENOMEM), true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "x", Err: "dial udp 1.1.1.1:53: socket: too many open files"}}, true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Name: "x", Err: "no such host", IsNotFound: true}}, false},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, false},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, false},
		{io.EOF, false},
		{nil, false},
	} {
		if got := sink.IsLocal(test.err); got != test.local {
			t.Errorf("%v: %t", test.err, got)
		}
	}
}
