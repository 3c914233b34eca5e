package nats

import "testing"

// An unencrypted password never leaves this host, whatever server the cluster names.
func TestPlainPasswordStaysHere(t *testing.T) {
	t.Parallel()
	plain, encrypted := []string{"nats://a"}, []string{"tls://a", "tls://b"}
	for _, c := range []struct {
		o    Options
		want bool
	}{
		{Options{Servers: plain}, false},
		{Options{Servers: plain, NKeyFile: "f"}, false},
		{Options{Servers: plain, User: "u", Password: "p"}, true},
		{Options{Servers: plain, Token: "t"}, true},
		{Options{Servers: plain, Token: "t", Insecure: true}, false},
		{Options{Servers: plain, Token: "t", TLS: &TLS{}}, false},
		{Options{Servers: encrypted, Token: "t"}, false},
	} {
		if got := c.o.showsPassword(); got != c.want {
			t.Errorf("%+v: %v", c.o, got)
		}
	}
	c, err := Dial(Options{Servers: plain, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if !c.dialer.hereOnly {
		t.Error("the dialer does not check the address")
	}
}
