package ingress_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/command/ingress"
)

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, key}
	text, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, &key.PublicKey, key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a authority) sign(t *testing.T, template x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotAfter = big.NewInt(2), time.Now().Add(time.Hour)
	text, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
}

// A client's certificate names the producer. One of another authority, or of no producer, names none; and a token of another
// producer beside it refuses the request.
func TestIngressCertificates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ours, theirs := newAuthority(t), newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(ours.certificate)
	server := ours.sign(t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	at := w.serve(w.db.Pool, ingress.Options{
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven},
		Producers: map[string]ingress.Producer{
			"shop": {Secret: "shop", Certificates: []string{"shop.internal", "spiffe://example/shop"}}, "crm": {Secret: "crm", Certificates: []string{"crm.internal"}},
		},
	})
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	uri, err := url.Parse("spiffe://example/shop")
	if err != nil {
		t.Fatal(err)
	}
	noToken := w.post("k", `{"id": 1}`).with("Authorization")
	for name, c := range map[string]struct {
		certificate *x509.Certificate
		by          authority
		post        post
		status      int // 0: no answer at all
	}{
		"common name":             {&x509.Certificate{Subject: pkix.Name{CommonName: "shop.internal"}, ExtKeyUsage: client}, ours, noToken, 200},
		"DNS name":                {&x509.Certificate{DNSNames: []string{"shop.internal"}, ExtKeyUsage: client}, ours, noToken, 200},
		"URI":                     {&x509.Certificate{URIs: []*url.URL{uri}, ExtKeyUsage: client}, ours, noToken, 200},
		"with its token":          {&x509.Certificate{DNSNames: []string{"shop.internal"}, ExtKeyUsage: client}, ours, w.post("k", `{"id": 1}`), 200},
		"token alone":             {nil, ours, w.post("k", `{"id": 1}`), 200},
		"of another producer":     {&x509.Certificate{DNSNames: []string{"crm.internal"}, ExtKeyUsage: client}, ours, noToken, 403},
		"with another's token":    {&x509.Certificate{DNSNames: []string{"crm.internal"}, ExtKeyUsage: client}, ours, w.post("k", `{"id": 1}`), 401},
		"of two producers":        {&x509.Certificate{DNSNames: []string{"crm.internal", "shop.internal"}, ExtKeyUsage: client}, ours, noToken, 401},
		"of no producer":          {&x509.Certificate{DNSNames: []string{"SHOP.internal"}, ExtKeyUsage: client}, ours, noToken, 401},
		"nothing":                 {nil, ours, noToken, 401},
		"of another authority":    {&x509.Certificate{DNSNames: []string{"shop.internal"}, ExtKeyUsage: client}, theirs, noToken, 0},
		"not for clients":         {&x509.Certificate{DNSNames: []string{"shop.internal"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ours, noToken, 0},
		"of a name without a use": {&x509.Certificate{Subject: pkix.Name{Organization: []string{"shop.internal"}}, ExtKeyUsage: client}, ours, noToken, 401},
	} {
		secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
		if c.certificate != nil {
			certificate := c.by.sign(t, *c.certificate)
			// Not by Certificates, which Go shows only to servers that name its authority.
			secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
		}
		transport := &http.Transport{TLSClientConfig: secure}
		got, err := do(t.Context(), &http.Client{Transport: transport}, at, c.post)
		transport.CloseIdleConnections()
		if got.status != c.status || (c.status == 0) != (err != nil) {
			t.Errorf("%s: %d %s, want %d (%v)", name, got.status, got.text, c.status, err)
		}
	}
	if got := w.text(`select count(*) || ' ' || min(producer) from tidemark.command_claim`); got != "1 shop" {
		t.Error(got)
	}
}
