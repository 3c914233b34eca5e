package command

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tidemarkhq/tidemark/internal/strict"
)

// SignatureHeader is the record's header that holds its signature.
const SignatureHeader = "tidemark-signature"

// signed begins what a signature covers, so that none made for another purpose fits.
const signed = "tidemark-command-v1"

const mostSignature = 4 << 10

// Record is what a signature covers: the bytes, and where they go.
type Record struct {
	Cluster string // commands.cluster: the operator's name of the Kafka cluster
	Topic   string
	Key     []byte // nil: the record has none
	Value   []byte
}

// bytes is what is signed. Each part follows its length as Kafka writes it, four bytes, -1 for none: so no byte of one part can
// pass for a byte of the next.
func (r Record) bytes() []byte {
	all := make([]byte, 0, 5*4+len(signed)+len(r.Cluster)+len(r.Topic)+len(r.Key)+len(r.Value))
	for _, part := range [][]byte{[]byte(signed), []byte(r.Cluster), []byte(r.Topic), r.Key, r.Value} {
		if part == nil {
			all = append(all, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		all = append(binary.BigEndian.AppendUint32(all, uint32(len(part))), part...) //nolint:gosec // a record has less than 2 GiB
	}
	return all
}

// Sign makes the value of SignatureHeader: a JWS in compact form whose payload is detached.
func Sign(r Record, kid string, key ed25519.PrivateKey) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		return "", err
	}
	signature, err := signer.Sign(r.bytes())
	if err != nil {
		return "", err
	}
	return signature.DetachedCompactSerialize()
}

// Key is a producer's public key, a row of tidemark.producer_key.
type Key struct {
	Public     ed25519.PublicKey
	Producer   string
	Service    string
	Tenants    []string // "*": all; nil: those of the allowlist
	Commands   []string // nil: those of the allowlist
	ValidFrom  time.Time
	ValidUntil time.Time // zero: no end
	Revoked    bool
}

// Verify tells whose key signed a record. The kid only selects the key: what the key may do is not read from the record. An
// error is a [*Refusal].
func Verify(header string, r Record, keyOf func(kid string) (Key, bool)) (Key, error) {
	if header == "" {
		return Key{}, identity(IdentitySignatureMissing, "the record has no header %s: sign it, or send it to the service's own topic",
			SignatureHeader)
	}
	if len(header) > mostSignature {
		return Key{}, identity(IdentitySignatureInvalid, "the signature has %d bytes, must have at most %d", len(header), mostSignature)
	}
	kid, err := kidOf(header)
	if err != nil {
		return Key{}, identity(IdentitySignatureInvalid, "%v", err)
	}
	jws, err := jose.ParseDetached(header, r.bytes(), []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return Key{}, identity(IdentitySignatureInvalid, "the signature is not a detached JWS in compact form with the algorithm EdDSA")
	}
	key, known := keyOf(kid)
	if !known {
		return Key{}, identity(IdentityKeyUnknown, "no key %s is registered", strict.Short(kid))
	}
	if err := jws.DetachedVerify(r.bytes(), key.Public); err != nil {
		return Key{}, identity(IdentitySignatureInvalid,
			"the signature of key %s does not fit the record's cluster, topic, key and value", strict.Short(kid))
	}
	return key, nil
}

// kidOf reads the signature's header before a library does. It refuses every parameter but three: jwk, x5c and jku bring a key
// of the sender's own, crit and b64 change what is signed.
func kidOf(signature string) (string, error) {
	encoded, _, _ := strings.Cut(signature, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = strict.Check(text)
	}
	var header map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &header) != nil {
		return "", errors.New("the signature's header is not a JSON object in base64url")
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if name != "alg" && name != "kid" && name != "typ" {
			return "", fmt.Errorf("the signature's header has %s, must have alg and kid, and may have typ", strict.Short(name))
		}
	}
	var kid string
	if json.Unmarshal(header["kid"], &kid) != nil || kid == "" {
		return "", errors.New("the signature's header has no kid, must have the name of a registered key")
	}
	return kid, nil
}

// Allows checks a verified key against the command that it signed and the broker's time of the record. A revoked key is refused
// whatever that time is: the holder of a stolen key may have sent it earlier. An error is a [*Refusal].
func (k Key) Allows(e Envelope, at time.Time) error {
	switch {
	case k.Revoked:
		return identity(IdentityKeyRevoked, "the key is revoked")
	case at.Before(k.ValidFrom):
		return identity(IdentityKeyRevoked, "the key is valid from %s, the record is of %s", utc(k.ValidFrom), utc(at))
	case !k.ValidUntil.IsZero() && !at.Before(k.ValidUntil):
		return identity(IdentityKeyRevoked, "the key was valid until %s, the record is of %s", utc(k.ValidUntil), utc(at))
	case e.Producer != k.Producer:
		return identity(IdentityProducerNotAllowed, "metadata.producer is not the producer whose key signed the record")
	case e.Service != k.Service:
		return identity(IdentityProducerNotAllowed, "the key is not for the service %s", strict.Short(e.Service))
	case k.Commands != nil && !slices.Contains(k.Commands, e.Command):
		return identity(IdentityProducerNotAllowed, "the key is not for the command %s", strict.Short(e.Command))
	case k.Tenants != nil && !slices.Contains(k.Tenants, "*") && (e.Tenant == "" || !slices.Contains(k.Tenants, e.Tenant)):
		return identity(IdentityTenantNotAllowed, "the key is not for the tenant %s", strict.Short(e.Tenant))
	}
	return nil
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func identity(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{reason, []string{fmt.Sprintf(format, args...)}}
}

// Signer reads a private key, a JWK (Ed25519) with its kid, and returns what signs with it.
func Signer(jwk []byte) (kid string, sign func(Record) (string, error), err error) {
	var key jose.JSONWebKey
	if err := key.UnmarshalJSON(jwk); err != nil {
		return "", nil, errors.New(`not a JWK: {"kty": "OKP", "crv": "Ed25519", "kid": …, "x": …, "d": …}`)
	}
	private, ok := key.Key.(ed25519.PrivateKey)
	if !ok {
		return "", nil, errors.New(`not a private key: it needs "kty": "OKP", "crv": "Ed25519", "x" and "d"`)
	}
	if key.KeyID == "" {
		return "", nil, errors.New(`the key has no "kid", under which it is registered`)
	}
	return key.KeyID, func(r Record) (string, error) { return Sign(r, key.KeyID, private) }, nil
}
