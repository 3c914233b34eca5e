package api

import (
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// SE1: a producer's key has the span that it is given; without one it is valid from now on.
func TestKeySpan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.service()
	const key = `"producer": "shop", "public_key": {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}, "reason": "x"`
	gets[store.ProducerKey](w, ada, "POST", "/services/"+service+"/keys", `{"kid": "span", "valid_from": "2099-01-01T00:00:00Z", "valid_until": "2099-02-01T00:00:00Z", `+key+`}`)
	gets[store.ProducerKey](w, ada, "POST", "/services/"+service+"/keys", `{"kid": "open", `+key+`}`)
	for kid, want := range map[string]string{"span": "2099-01-01 00:00:00 2099-02-01 00:00:00", "open": ""} {
		if got := one[string](w, `select concat_ws(' ', case when valid_from > now() + interval '1 minute' then valid_from at time zone 'UTC' end, valid_until at time zone 'UTC') from tidemark.producer_key where kid = '`+kid+`'`); got != want {
			t.Errorf("%s: %q", kid, got)
		}
	}
}
