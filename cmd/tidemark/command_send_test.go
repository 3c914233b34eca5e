package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// A command without a result, such as a parked one, shows none.
func TestAnswerWithoutResult(t *testing.T) {
	t.Parallel()
	for document, shown := range map[string]bool{
		`{"status": "failed_retryable", "error_code": "sql.undefined", "error_message": "a table is missing", "result": null, "attempts": 1}`: false,
		`{"status": "processed", "result": {"id": 7}, "attempts": 1}`:                                                                         true,
	} {
		var out bytes.Buffer
		s := &cli.Session{Printer: &cli.Printer{Out: &out, Err: &out}}
		err := printAnswer(s, sent{Command: "billing.pay/v1", Key: "k"}, store.CommandAnswer{Document: json.RawMessage(document)})
		if (err == nil) != shown || strings.Contains(out.String(), "result") != shown || !strings.Contains(out.String(), "status") {
			t.Errorf("%s: %v\n%s", document, err, &out)
		}
	}
}
