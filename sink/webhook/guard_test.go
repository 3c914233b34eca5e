package webhook_test

import (
	"context"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

// The sink calls none of these addresses, in whatever notation, and no name that resolves to one.
func TestAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for host, refused := range map[string]string{
		"127.0.0.1":                  "127.0.0.1",
		"127.1.2.3":                  "127.1.2.3",
		"0.0.0.0":                    "0.0.0.0",
		"10.0.0.1":                   "10.0.0.1",
		"172.16.0.1":                 "172.16.0.1",
		"192.168.1.1":                "192.168.1.1",
		"100.64.0.1":                 "100.64.0.1",
		"169.254.169.254":            "169.254.169.254", // metadata of most clouds
		"192.0.0.192":                "192.0.0.192",     // metadata of another cloud
		"100.100.100.200":            "100.100.100.200", // metadata of a third one
		"168.63.129.16":              "168.63.129.16",   // a cloud's host service, at a public address
		"198.18.0.1":                 "198.18.0.1",
		"224.0.0.1":                  "224.0.0.1",
		"255.255.255.255":            "255.255.255.255",
		"[::1]":                      "::1",
		"[::]":                       "::",
		"[::ffff:127.0.0.1]":         "127.0.0.1",
		"[::ffff:7f00:1]":            "127.0.0.1",
		"[0:0:0:0:0:ffff:a9fe:a9fe]": "169.254.169.254",
		"[::127.0.0.1]":              "::7f00:1",
		"[fd00:ec2::254]":            "fd00:ec2::254", // metadata again
		"[fc00::1]":                  "fc00::1",
		"[ff02::1]":                  "ff02::1",
		"[64:ff9b::7f00:1]":          "64:ff9b::7f00:1",
		"[2002:7f00:1::]":            "2002:7f00:1::",
		"[2001::1]":                  "2001::1",
		"[2001:db8::1]":              "2001:db8::1",
	} {
		s, err := webhook.New(webhook.Options{URL: "https://" + host + "/", Secrets: []string{secret}})
		if err != nil {
			t.Fatal(err)
		}
		check(t, deliver(t, s, paid()), sink.Result{
			Status: sink.Retry, Code: "address_refused", Detail: refused + " is not public, and in no network of allow",
		})
	}
}

func TestNamesOfRefusedAddresses(t *testing.T) {
	t.Parallel()
	for host, addresses := range map[string][]string{
		"shop.test":                {"127.0.0.1"},
		"0x7f.1":                   {"127.0.0.1"}, // hexadecimal, and short
		"127.0.0.1.nip.test":       {"127.0.0.1"},
		"metadata.google.internal": {"169.254.169.254"},
		"both.test":                {"10.0.0.1", "fd00::1"},
		"six.test":                 {"::1"},
		"mapped.test":              {"::ffff:127.0.0.1"},
	} {
		s, err := webhook.NewResolving(webhook.Options{URL: "https://" + host + "/", Secrets: []string{secret}}, resolver(addresses...))
		if err != nil {
			t.Fatal(err)
		}
		if got := deliver(t, s, paid()); got.Code != "address_refused" || got.Status != sink.Retry {
			t.Errorf("%s: %+v", host, got)
		}
	}
	// With this machine's resolver: some resolve a number to 127.0.0.1, others refuse it.
	for host, codes := range map[string]string{"localhost": "address_refused", "2130706433": "address_refused dns", "0177.0.0.1": "address_refused dns"} {
		s, err := webhook.New(webhook.Options{URL: "https://" + host + "/", Secrets: []string{secret}})
		if err != nil {
			t.Fatal(err)
		}
		if got := deliver(t, s, paid()); got.Code == "" || !strings.Contains(codes, got.Code) {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

// A name may resolve to another address at the time of the call: the guard checks that address.
func TestRebinding(t *testing.T) {
	t.Parallel()
	called := false
	address := server(t, func(w http.ResponseWriter, _ *http.Request) {
		called = true
		w.Header().Set("Connection", "close")
	})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	now := "127.0.0.1"
	changing := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		return resolver(now).Dial(ctx, network, address)
	}}
	s, err := webhook.NewResolving(webhook.Options{
		URL: "http://shop.test:" + port, Secrets: []string{secret}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	}, changing)
	if err != nil {
		t.Fatal(err)
	}
	check(t, deliver(t, s, paid()), sink.Result{Status: sink.Delivered})
	now, called = "127.0.0.2", false // where the server listens too, on Linux
	check(t, deliver(t, s, paid()), sink.Result{
		Status: sink.Retry, Code: "address_refused", Detail: "127.0.0.2 is in no network of allow, and http:// is for these only",
	})
	if called {
		t.Error("the sink called the address")
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	address := server(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	for allow, want := range map[string]string{
		"127.0.0.1/32": "",
		"0.0.0.0/0":    "",
		"127.9.9.9/8":  "",
		"10.0.0.0/8":   "127.0.0.1 is in no network of allow, and http:// is for these only",
		"127.0.0.2/32": "127.0.0.1 is in no network of allow, and http:// is for these only",
		"::1/128":      "127.0.0.1 is in no network of allow, and http:// is for these only",
		"::/0":         "127.0.0.1 is in no network of allow, and http:// is for these only",
		"127.0.0.0/32": "127.0.0.1 is in no network of allow, and http:// is for these only",
	} {
		for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]"} {
			s := open(t, webhook.Options{URL: fmt.Sprintf("http://%s:%s/", host, port), Allow: []netip.Prefix{netip.MustParsePrefix(allow)}})
			if got := deliver(t, s, paid()); got.Detail != want {
				t.Errorf("%s and %s: %+v", host, allow, got)
			}
		}
	}
}

// The guard gets the address in the notation of the system.
func TestAllowKnowsEveryForm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ allow, address, refused string }{
		{"127.0.0.0/8", "127.0.0.1:1", ""},
		{"127.0.0.0/8", "[::ffff:127.0.0.1]:1", ""},
		{"fe80::/10", "[fe80::1%lo]:1", ""},
		{"fe80::/16", "[fec0::1]:80", "fec0::1 is not public, and in no network of allow"},
		{"fe80::/10", "[::ffff:169.254.169.254]:80", "169.254.169.254 is not public, and in no network of allow"},
		{"fe80::/10", "[::ffff:8.8.8.8]:80", ""},
		{"fe80::/10", "shop.test:80", "the address cannot be read"},
	} {
		got := ""
		if err := webhook.MayDial([]netip.Prefix{netip.MustParsePrefix(test.allow)}, test.address); err != nil {
			got = err.Error()
		}
		if got != test.refused {
			t.Errorf("%s: got %q, want %q", test.address, got, test.refused)
		}
	}
}

// The guard also checks the port if some network is allowed, when New cannot refuse it yet.
func TestPorts(t *testing.T) {
	t.Parallel()
	for port, want := range map[int]string{
		8443: "port 8443 of 203.0.113.7 is not 80, 443 or in ports, and 203.0.113.7 is in no network of allow",
		8444: "203.0.113.7 is not public, and in no network of allow", // the port is allowed; the address is not
		80:   "203.0.113.7 is not public, and in no network of allow",
		443:  "203.0.113.7 is not public, and in no network of allow",
	} {
		s, err := webhook.NewResolving(webhook.Options{
			URL: fmt.Sprintf("https://shop.test:%d", port), Secrets: []string{secret}, Allow: loopback, Ports: []uint16{8444},
		}, resolver("203.0.113.7"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, deliver(t, s, paid()), sink.Result{Status: sink.Retry, Code: "address_refused", Detail: want})
	}
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// resolver resolves every name to these addresses.
func resolver(addresses ...string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			for {
				if !answerQuestion(ours, addresses) {
					return
				}
			}
		}()
		return theirs, nil
	}}
}

// answerQuestion answers one DNS query over TCP: a length, then the message.
func answerQuestion(c net.Conn, addresses []string) bool {
	buffer := make([]byte, 1024)
	n, err := c.Read(buffer)
	if err != nil || n < 2 {
		return false
	}
	size := int(binary.BigEndian.Uint16(buffer))
	for n < 2+size {
		more, err := c.Read(buffer[n:])
		if err != nil {
			return false
		}
		n += more
	}
	question := buffer[2 : 2+size]
	end := 12
	for question[end] != 0 {
		end += 1 + int(question[end])
	}
	end += 5
	kind := binary.BigEndian.Uint16(question[end-4:])
	out := append([]byte{}, question[:end]...)
	answers := 0
	for _, text := range addresses {
		ip := netip.MustParseAddr(text)
		if ip.Is4() && kind == 1 || ip.Is6() && kind == 28 {
			answers++
			out = append(out, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(ip.AsSlice())))
			out = append(out, ip.AsSlice()...)
		}
	}
	binary.BigEndian.PutUint16(out[2:], 0x8180)
	for i, count := range []int{1, answers, 0, 0} {
		binary.BigEndian.PutUint16(out[4+2*i:], uint16(count))
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	return err == nil
}
