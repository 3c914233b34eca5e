package ingress_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/command/ingress"
)

// A command may take longer than an answer may take to be written, over HTTP/1 and HTTP/2.
func TestLongCommandIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`select tidemark.command_set($1, 'make', 1, '{"timeout": "30 seconds"}')`, w.service)
	w.change = func(i *ingress.Ingress) { i.SetWriteTimeout(2 * time.Second) }
	us, pool := newAuthority(t), x509.NewCertPool()
	pool.AddCert(us.certificate)
	server := us.sign(t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, ForceAttemptHTTP2: true}
	plain, secure := w.serve(w.db.Pool, ingress.Options{}), w.serve(w.db.Pool, ingress.Options{TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{server}}})
	for url, payload := range map[string]string{plain: `{"id": 1, "sleep": 3}`, secure: `{"id": 2, "sleep": 3}`} {
		got, err := do(t.Context(), &http.Client{Transport: transport}, url, w.post(url, payload))
		if err != nil || got.status != http.StatusOK || got.Status != "processed" {
			t.Errorf("%s: %+v, %v", url, got, err)
		}
	}
	transport.CloseIdleConnections()
}
