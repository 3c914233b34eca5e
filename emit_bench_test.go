package tidemark_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What one event costs in a transaction that is open: without a schema, with one that SQL checks whole, and with one that only
// the library checks whole.
func BenchmarkEmit(b *testing.B) {
	db := tidemarktest.NewDB(b)
	conn := db.Connect(b)
	for name, schema := range map[string]string{
		"plain": `null`,
		"sql":   `{"required": ["id"], "properties": {"id": {"type": "integer"}}}`,
		"whole": `{"required": ["id"], "additionalProperties": false, "properties": {"id": {"type": "integer", "minimum": 1},
			"pad": {"type": "string", "maxLength": 200}, "items": {"items": {"required": ["sku"]}}}}`,
	} {
		if _, err := conn.Exec(b.Context(), `select tidemark.type_set('shop', $1, jsonb_build_object('schema', $2::jsonb))`, name, schema); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"plain", "sql", "whole"} {
		b.Run(name, func(b *testing.B) {
			tx, err := conn.Begin(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = tx.Rollback(b.Context()) }()
			n := 0
			for b.Loop() {
				n++
				payload := json.RawMessage(fmt.Sprintf(`{"id": %d, "pad": "%0100d", "items": [{"sku": "x"}, {"sku": "y"}]}`, n, n))
				if _, err := tidemark.Emit(b.Context(), tx, tidemark.Event{Domain: "shop", Type: name, Payload: payload}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
