package command_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/internal/command"
)

func private(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
}

func public(seed byte) ed25519.PublicKey { return private(seed).Public().(ed25519.PublicKey) }

// keys are the registered ones: two producers, and no forger.
func keys(kid string) (command.Key, bool) {
	key, known := map[string]command.Key{
		"shop-1": {Public: public('s'), Producer: "web-shop", Service: "billing"},
		"crm-1":  {Public: public('c'), Producer: "crm", Service: "billing"},
	}[kid]
	return key, known
}

var signedRecord = command.Record{Cluster: "prod-eu", Topic: "db-events", Key: []byte("inv-7"), Value: []byte(envelope)}

func sign(t testing.TB, r command.Record, kid string, key ed25519.PrivateKey) string {
	t.Helper()
	header, err := command.Sign(r, kid, key)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

func TestSignature(t *testing.T) {
	t.Parallel()
	header := sign(t, signedRecord, "shop-1", private('s'))
	if parts := strings.Split(header, "."); len(parts) != 3 || parts[1] != "" {
		t.Errorf("not detached: %s", header)
	}
	key, err := command.Verify(header, signedRecord, keys)
	if err != nil || key.Producer != "web-shop" {
		t.Error(key, err)
	}
	for name, r := range map[string]command.Record{
		"no key":    {Cluster: "c", Topic: "t", Value: []byte("v")},
		"empty key": {Cluster: "c", Topic: "t", Key: []byte{}, Value: []byte("v")},
		"nothing":   {},
	} {
		if _, err := command.Verify(sign(t, r, "shop-1", private('s')), r, keys); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a producer without this package signs: the docs describe these bytes.
func TestSignatureByHand(t *testing.T) {
	t.Parallel()
	var covered []byte
	for _, part := range []string{"tidemark-command-v1", "prod-eu", "db-events", "inv-7", envelope} {
		covered = append(binary.BigEndian.AppendUint32(covered, uint32(len(part))), part...)
	}
	header := forge(t, map[string]any{"alg": "EdDSA", "kid": "shop-1"}, covered, private('s'))
	if _, err := command.Verify(header, signedRecord, keys); err != nil {
		t.Error(err)
	}
	if header != sign(t, signedRecord, "shop-1", private('s')) {
		t.Error("the bytes differ")
	}
}

// The function in docs/command-contracts.md made this one.
func TestSignatureOfPython(t *testing.T) {
	t.Parallel()
	const header = "eyJhbGciOiAiRWREU0EiLCAia2lkIjogInNob3AtMSJ9..yaVM-CT7KK1NsyPL8CLcuroybEUGcDINHmaWqQNn-gAGYRZ_9aK1kKyqCZIkWPrVt0CPGHTFuvYzlp2_tvyvDw"
	r := command.Record{Cluster: "prod-eu", Topic: "db-events", Key: []byte("inv-7"), Value: []byte("{}")}
	if _, err := command.Verify(header, r, keys); err != nil {
		t.Error(err)
	}
}

// A signature fits one cluster, topic, key and value.
func TestSignatureElsewhere(t *testing.T) {
	t.Parallel()
	header := sign(t, signedRecord, "shop-1", private('s'))
	for name, change := range map[string]func(*command.Record){
		"another cluster":  func(r *command.Record) { r.Cluster = "staging" },
		"another topic":    func(r *command.Record) { r.Topic = "db-events.billing" },
		"a swapped key":    func(r *command.Record) { r.Key = []byte("inv-8") },
		"no key":           func(r *command.Record) { r.Key = nil },
		"an empty key":     func(r *command.Record) { r.Key = []byte{} },
		"another value":    func(r *command.Record) { r.Value = []byte(strings.Replace(envelope, "1200", "9900", 1)) },
		"a blank more":     func(r *command.Record) { r.Value = []byte(envelope + " ") },
		"a byte moved":     func(r *command.Record) { r.Topic, r.Key = "db-eventsi", []byte("nv-7") },
		"parts exchanged":  func(r *command.Record) { r.Cluster, r.Topic = r.Topic, r.Cluster },
		"topic into value": func(r *command.Record) { r.Topic, r.Value = "", append([]byte("db-events"), r.Value...) },
	} {
		r := signedRecord
		change(&r)
		_, err := command.Verify(header, r, keys)
		wantReason(t, name, err, command.IdentitySignatureInvalid, "does not fit the record")
	}
}

// No two records share the bytes that are signed.
func TestSignatureCoversEachPart(t *testing.T) {
	t.Parallel()
	part := rapid.StringMatching(`[\x00\xff a-c]{0,3}`)
	draw := func(t *rapid.T, name string) command.Record {
		r := command.Record{Cluster: part.Draw(t, name), Topic: part.Draw(t, name), Value: []byte(part.Draw(t, name))}
		if rapid.Bool().Draw(t, name) {
			r.Key = []byte(part.Draw(t, name))
		}
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		header, err := command.Sign(a, "shop-1", private('s'))
		if err != nil {
			t.Fatal(err)
		}
		same := fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
		if _, err := command.Verify(header, b, keys); (err == nil) != same {
			t.Fatalf("%#v\n%#v\n%v", a, b, err)
		}
	})
}

// SE1: forgers.
func TestSignatureOfAForger(t *testing.T) {
	t.Parallel()
	covered := coveredBytes(signedRecord)
	jwk := map[string]string{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(public('f'))}
	with := func(more map[string]any) map[string]any {
		header := map[string]any{"alg": "EdDSA", "kid": "shop-1"}
		maps.Copy(header, more)
		return header
	}
	hs256 := func(key []byte) string {
		input := encode(t, map[string]any{"alg": "HS256", "kid": "shop-1"}) + "."
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(input + base64.RawURLEncoding.EncodeToString(covered)))
		return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	good := sign(t, signedRecord, "shop-1", private('s'))
	head, tail, _ := strings.Cut(good, "..")
	for name, c := range map[string]struct {
		header string
		reason command.Reason
		want   string
	}{
		"no signature":           {"", command.IdentitySignatureMissing, "sign it, or send it to the service's own topic"},
		"a stolen kid":           {sign(t, signedRecord, "shop-1", private('f')), command.IdentitySignatureInvalid, "does not fit"},
		"another producer's key": {sign(t, signedRecord, "shop-1", private('c')), command.IdentitySignatureInvalid, "does not fit"},
		"a kid of no key":        {sign(t, signedRecord, "shop-2", private('s')), command.IdentityKeyUnknown, `no key "shop-2" is registered`},
		"no kid":                 {forge(t, map[string]any{"alg": "EdDSA"}, covered, private('s')), command.IdentitySignatureInvalid, "has no kid"},
		"an empty kid":           {forge(t, with(map[string]any{"kid": ""}), covered, private('s')), command.IdentitySignatureInvalid, "has no kid"},
		"a kid that is a list":   {forge(t, with(map[string]any{"kid": []string{"shop-1"}}), covered, private('s')), command.IdentitySignatureInvalid, "has no kid"},
		"a jwk":                  {forge(t, with(map[string]any{"jwk": jwk}), covered, private('f')), command.IdentitySignatureInvalid, `has "jwk"`},
		"a jku":                  {forge(t, with(map[string]any{"jku": "https://example.com"}), covered, private('f')), command.IdentitySignatureInvalid, `has "jku"`},
		"an x5c":                 {forge(t, with(map[string]any{"x5c": []string{}}), covered, private('s')), command.IdentitySignatureInvalid, `has "x5c"`},
		"b64":                    {forge(t, with(map[string]any{"b64": false, "crit": []string{"b64"}}), covered, private('s')), command.IdentitySignatureInvalid, `has "b64"`},
		"alg none":               {encode(t, map[string]any{"alg": "none", "kid": "shop-1"}) + "..", command.IdentitySignatureInvalid, "EdDSA"},
		"alg None":               {encode(t, map[string]any{"alg": "None", "kid": "shop-1"}) + ".." + tail, command.IdentitySignatureInvalid, "EdDSA"},
		"alg HS256":              {hs256(public('s')), command.IdentitySignatureInvalid, "EdDSA"},
		"no alg":                 {encode(t, map[string]any{"kid": "shop-1"}) + ".." + tail, command.IdentitySignatureInvalid, "EdDSA"},
		"two kids": {
			base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"shop-1","kid":"crm-1"}`)) + ".." + tail,
			command.IdentitySignatureInvalid, "not a JSON object",
		},
		"no detached payload": {head + "." + base64.RawURLEncoding.EncodeToString(covered) + "." + tail, command.IdentitySignatureInvalid, ""},
		"empty":               {head + "..", command.IdentitySignatureInvalid, ""},
		"half":                {good[:len(good)-10], command.IdentitySignatureInvalid, ""},
		"junk":                {"junk", command.IdentitySignatureInvalid, "not a JSON object"},
		"long":                {strings.Repeat("a", 5000), command.IdentitySignatureInvalid, "must have at most 4096"},
	} {
		_, err := command.Verify(c.header, signedRecord, keys)
		wantReason(t, name, err, c.reason, c.want)
	}
}

func TestKeyAllows(t *testing.T) {
	t.Parallel()
	e, err := command.Parse([]byte(envelope))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*command.Key)
		reason command.Reason
	}{
		"as it is":         {func(*command.Key) {}, ""},
		"these tenants":    {func(k *command.Key) { k.Tenants = []string{"other", "acme"} }, ""},
		"all tenants":      {func(k *command.Key) { k.Tenants = []string{"*"} }, ""},
		"these commands":   {func(k *command.Key) { k.Commands = []string{"charge.capture"} }, ""},
		"valid from now":   {func(k *command.Key) { k.ValidFrom = at }, ""},
		"revoked":          {func(k *command.Key) { k.Revoked = true }, command.IdentityKeyRevoked},
		"not yet valid":    {func(k *command.Key) { k.ValidFrom = at.Add(1) }, command.IdentityKeyRevoked},
		"valid until now":  {func(k *command.Key) { k.ValidUntil = at }, command.IdentityKeyRevoked},
		"another producer": {func(k *command.Key) { k.Producer = "crm" }, command.IdentityProducerNotAllowed},
		"another service":  {func(k *command.Key) { k.Service = "user" }, command.IdentityProducerNotAllowed},
		"another command":  {func(k *command.Key) { k.Commands = []string{"charge"} }, command.IdentityProducerNotAllowed},
		"no command":       {func(k *command.Key) { k.Commands = []string{} }, command.IdentityProducerNotAllowed},
		"another tenant":   {func(k *command.Key) { k.Tenants = []string{"other"} }, command.IdentityTenantNotAllowed},
		"no tenant":        {func(k *command.Key) { k.Tenants = []string{} }, command.IdentityTenantNotAllowed},
	} {
		key, _ := keys("shop-1")
		c.change(&key)
		wantReason(t, name, key.Allows(e, at), c.reason, "")
	}
	e.Tenant = ""
	key, _ := keys("shop-1")
	key.Tenants = []string{""}
	wantReason(t, "a key of tenants, for none", key.Allows(e, at), command.IdentityTenantNotAllowed, "")
}

func wantReason(t *testing.T, name string, err error, reason command.Reason, text string) {
	t.Helper()
	var refusal *command.Refusal
	switch {
	case reason == "" && err == nil:
	case !errors.As(err, &refusal) || refusal.Reason != reason || !strings.Contains(err.Error(), text):
		t.Errorf("%s: got %v, want %s: %s", name, err, reason, text)
	}
}

func coveredBytes(r command.Record) (all []byte) {
	for _, part := range [][]byte{[]byte("tidemark-command-v1"), []byte(r.Cluster), []byte(r.Topic), r.Key, r.Value} {
		all = append(binary.BigEndian.AppendUint32(all, uint32(len(part))), part...)
	}
	return all
}

func encode(t *testing.T, header map[string]any) string {
	t.Helper()
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func forge(t *testing.T, header map[string]any, covered []byte, key ed25519.PrivateKey) string {
	t.Helper()
	head := encode(t, header)
	signature := ed25519.Sign(key, []byte(head+"."+base64.RawURLEncoding.EncodeToString(covered)))
	return head + ".." + base64.RawURLEncoding.EncodeToString(signature)
}

func FuzzVerify(f *testing.F) {
	f.Add(sign(f, signedRecord, "shop-1", private('f')))
	f.Add("eyJhbGciOiJub25lIiwia2lkIjoic2hvcC0xIn0..")
	f.Add("..")
	f.Fuzz(func(t *testing.T, header string) {
		if _, err := command.Verify(header, signedRecord, keys); err == nil {
			t.Fatal("forged: " + header)
		}
	})
}
