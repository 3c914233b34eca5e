package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// guard decides which addresses the sink may call. It checks the address of each connection itself, so neither an
// earlier lookup of the name nor the notation of the address matters.
type guard struct {
	allow  []netip.Prefix
	public *ssrf.Guardian
	plain  bool // http://: only networks in allow, since the way there could read and change requests
}

// refusal is the error for an address that the sink may not call.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

var (
	publicPorts = []uint16{80, 443}
	// hostService is a public address at which Azure serves metadata and certificates of the machine.
	hostService = netip.MustParsePrefix("168.63.129.16/32")
)

func newGuard(o *Options, scheme string) *guard {
	ports := slices.Concat(publicPorts, o.Ports)
	return &guard{o.Allow, ssrf.New(ssrf.WithPorts(ports...), ssrf.WithDeniedV4Prefixes(hostService)), scheme == "http"}
}

func (g *guard) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusal{"the address cannot be read"}
	}
	// Networks have no zones, and ::ffff:10.0.0.1 means 10.0.0.1.
	ip := to.Addr().Unmap().WithZone("")
	for _, network := range g.allow {
		if network.Contains(ip) {
			return nil
		}
	}
	if g.plain {
		return &refusal{fmt.Sprintf("%s is in no network of allow, and http:// is for these only", ip)}
	}
	switch err := g.public.SafeAddrPort(netip.AddrPortFrom(ip, to.Port())); {
	case err == nil:
		return nil
	case errors.Is(err, ssrf.ErrProhibitedPort):
		return &refusal{fmt.Sprintf("port %d of %s is not 80, 443 or in ports, and %s is in no network of allow", to.Port(), ip, ip)}
	}
	return &refusal{fmt.Sprintf("%s is not public, and in no network of allow", ip)}
}

const (
	dialTime      = 10 * time.Second // also for TLS
	idleTime      = 30 * time.Second // below the usual limits of servers and load balancers, so that they seldom close first
	maxHeader     = 64 << 10         // of an answer
	requestBuffer = 16 << 10         // most requests are one write
)

func (o *Options) transport(target *url.URL, resolver *net.Resolver) (*http.Transport, *conns, error) {
	config, err := o.tls(target.Scheme)
	if err != nil {
		return nil, nil, err
	}
	most := o.MaxConns
	if most == 0 {
		most = defaultMaxConns
	}
	dialer := &net.Dialer{Timeout: dialTime, Resolver: resolver, Control: newGuard(o, target.Scheme).control}
	open := &conns{dialer: dialer, open: map[*conn]struct{}{}}
	return &http.Transport{
		Proxy:                  nil, // a proxy could call addresses that the guard refuses
		DialContext:            open.dial,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    dialTime,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small answer could unpack into a huge one
		MaxConnsPerHost:        most,
		MaxIdleConnsPerHost:    most,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        requestBuffer,
		// A timeout ends only the request's stream. These pings find a dead connection, on which all requests would fail.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
	}, open, nil
}
