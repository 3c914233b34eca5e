package webhook

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// signer signs with each of its keys, according to Standard Webhooks. A receiver that knows one of them can verify, so
// sender and receiver need not change keys at the same moment.
type signer struct {
	keys []key
	pool sync.Pool // of *signing
}

// key is a key of one of the two kinds.
type key struct {
	secret  []byte             // v1
	private ed25519.PrivateKey // v1a
}

// signing is the memory for making one signature.
type signing struct {
	macs []hash.Hash // one for each key, nil for v1a
	text []byte      // to be signed, for v1a
	sum  []byte
	out  []byte
}

func newSigner(secrets []string, unsigned bool) (*signer, error) {
	switch {
	case unsigned:
		return nil, errors.New("unsigned is set, and so are secrets: choose one")
	case len(secrets) == 0:
		return nil, errors.New("secrets are missing; to send without signatures set unsigned")
	}
	s := &signer{keys: make([]key, len(secrets))}
	for i, secret := range secrets {
		var err error
		if s.keys[i], err = parseKey(secret); err != nil {
			return nil, fmt.Errorf("secret %d of %d %w", i+1, len(secrets), err)
		}
	}
	s.pool.New = func() any {
		x := &signing{macs: make([]hash.Hash, len(s.keys))}
		for i, k := range s.keys {
			if k.private == nil {
				x.macs[i] = hmac.New(sha256.New, k.secret)
			}
		}
		return x
	}
	return s, nil
}

// parseKey reads a secret. Its errors never repeat it.
func parseKey(secret string) (key, error) {
	text, symmetric := strings.CutPrefix(secret, "whsec_")
	if !symmetric {
		var asymmetric bool
		if text, asymmetric = strings.CutPrefix(secret, "whsk_"); !asymmetric {
			return key{}, errors.New("must begin with whsec_, or with whsk_ if it is an ed25519 key")
		}
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	switch {
	case err != nil:
		return key{}, errors.New("is not base64 after its prefix")
	case symmetric && (len(b) < 24 || len(b) > 64):
		return key{}, fmt.Errorf("has %d bytes, must have 24 to 64", len(b))
	case symmetric:
		return key{secret: b}, nil
	case len(b) == ed25519.SeedSize:
		return key{private: ed25519.NewKeyFromSeed(b)}, nil
	case len(b) != ed25519.PrivateKeySize:
		return key{}, fmt.Errorf("has %d bytes, must have 32, or 64 with the public key", len(b))
	}
	private := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
	if !bytes.Equal(private, b) {
		return key{}, errors.New("has a public key that is not of its private key")
	}
	return key{private: private}, nil
}

// sign returns the value of the header webhook-signature.
func (s *signer) sign(id, stamp string, body []byte) string {
	x := s.pool.Get().(*signing)
	defer s.pool.Put(x)
	x.text = append(append(append(append(x.text[:0], id...), '.'), stamp...), '.')
	x.out = x.out[:0]
	for i, mac := range x.macs {
		if i > 0 {
			x.out = append(x.out, ' ')
		}
		if mac != nil {
			mac.Reset()
			mac.Write(x.text) // never fails
			mac.Write(body)
			x.sum = mac.Sum(x.sum[:0])
			x.out = base64.StdEncoding.AppendEncode(append(x.out, "v1,"...), x.sum)
			continue
		}
		signature := ed25519.Sign(s.keys[i].private, append(x.text, body...))
		x.out = base64.StdEncoding.AppendEncode(append(x.out, "v1a,"...), signature)
	}
	return string(x.out)
}
