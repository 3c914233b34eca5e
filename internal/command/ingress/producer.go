package ingress

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
)

// Producer is how a producer proves who it is.
type Producer struct {
	Secret       string   // name of its tokens; empty: none
	Certificates []string // names of certificates: common name, DNS name or URI
}

// producer tells who sent a request. Not ok: that is not proved, or two proofs name two producers.
func (i *Ingress) producer(r *http.Request) (name string, ok bool) {
	var proved []string
	if given := r.Header.Values("Authorization"); len(given) > 0 {
		scheme, token, _ := strings.Cut(given[0], " ")
		by := i.byToken(token)
		if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") || by == "" {
			return "", false
		}
		proved = append(proved, by)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		proved = append(proved, i.byCertificate(r.TLS.VerifiedChains[0][0])...)
	}
	slices.Sort(proved)
	if proved = slices.Compact(proved); len(proved) != 1 {
		return "", false
	}
	return proved[0], true
}

// byToken compares with all tokens, in a time that does not tell how much of one is right.
func (i *Ingress) byToken(token string) (producer string) {
	sum := sha256.Sum256([]byte(token))
	for name, p := range i.o.Producers {
		if p.Secret == "" {
			continue
		}
		for _, secret := range i.o.Secrets(p.Secret) {
			is := sha256.Sum256([]byte(secret))
			if secret != "" && subtle.ConstantTimeCompare(sum[:], is[:]) == 1 {
				producer = name
			}
		}
	}
	return producer
}

func (i *Ingress) byCertificate(c *x509.Certificate) (producers []string) {
	names := append([]string{c.Subject.CommonName}, c.DNSNames...)
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	for name, p := range i.o.Producers {
		if slices.ContainsFunc(p.Certificates, func(one string) bool { return one != "" && slices.Contains(names, one) }) {
			producers = append(producers, name)
		}
	}
	return producers
}
