package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	signatureHeader = "tidemark-signature"
	cluster         = "main" // the name of the connection: the default of commands.cluster
)

// covered are the bytes that a signature of a record covers, written from docs/command-contracts.md: the checker does not ask the
// product's own code.
func covered(topic string, key, value []byte) (all []byte) {
	for _, part := range [][]byte{[]byte("tidemark-command-v1"), []byte(cluster), []byte(topic), key, value} {
		all = append(binary.BigEndian.AppendUint32(all, uint32(len(part))), part...)
	}
	return all
}

// signed puts a signature on a record.
func signed(r *kgo.Record, kid string, key ed25519.PrivateKey) *kgo.Record {
	encode := base64.RawURLEncoding.EncodeToString
	header, err := json.Marshal(map[string]string{"alg": "EdDSA", "kid": kid})
	if err != nil {
		panic(err) // texts
	}
	input := encode(header) + "." + encode(covered(r.Topic, r.Key, r.Value))
	r.Headers = []kgo.RecordHeader{{Key: signatureHeader, Value: []byte(encode(header) + ".." + encode(ed25519.Sign(key, []byte(input))))}}
	return r
}

// proves tells whether the signature of a record on the shared topic is that of the service's producer.
func proves(keys map[string]ed25519.PublicKey, service string, a Asked) bool {
	header, signature, found := strings.Cut(a.Signature, "..")
	text, err := base64.RawURLEncoding.DecodeString(header)
	raw, bad := base64.RawURLEncoding.DecodeString(signature)
	var h struct{ Kid string }
	if !found || err != nil || bad != nil || json.Unmarshal(text, &h) != nil || h.Kid != kidOf(service) || keys[h.Kid] == nil {
		return false
	}
	input := header + "." + base64.RawURLEncoding.EncodeToString(covered(shared, []byte(a.Key), []byte(a.Value)))
	return ed25519.Verify(keys[h.Kid], []byte(input), raw)
}

// kidOf names the key by which the service's producer signs.
func kidOf(service string) string { return "chaos-" + service }
