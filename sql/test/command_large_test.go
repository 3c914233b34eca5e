package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// CM4: the limit of emitters refuses no result and no dead letter: a partition would stay at its record for ever.
func TestCommandResultsHaveALimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := serve(t, tidemarktest.NewDB(t)).partition()
	p.exec(`create function app.big(payload jsonb) returns json language sql as $$ select json_build_object('x', repeat('x', (payload ->> 'n')::int)) $$`)
	p.exec(`create function app.bad(payload jsonb) returns json language plpgsql as $$ begin raise '!%', repeat('ä', 5000); end $$`)
	p.command("big", `{"function": "app.big", "enabled": true, "dry_run": false, "payload_schema": {"type": "object"}}`)
	p.command("bad", `{"function": "app.bad", "enabled": true, "dry_run": false, "payload_schema": {"type": "object"}}`)
	big := func(key string, n int) string {
		return p.record(p.next, key, fmt.Sprintf(`{"n": %d}`, n), `{"command": "big"}`)
	}
	p.wantPass(`ran 1 {"processed": 1}`, "batch", big("a", 900000))
	p.exec(`update tidemark.setting set value = '1000' where key = 'emit.payload_limit'`)
	p.wantPass(`ran 2 {"duplicate": 1}`, "batch", big("a", 900000))
	p.wantPass(`ran 3 {"processed": 1}`, "batch", big("b", 900000))
	bad := p.record(p.next, strings.Repeat("c", 200), `{}`, `{"command": "bad"}`)
	_ = p.wantCode("P0001", "batch", bad)
	p.wantPass(`ran 4 {"failed_terminal": 1}`, "alone", bad)
	refused := fmt.Sprintf(`{"topic": "events", "topic_id": "T", "partition": 3, "offset": 4, "via": "acl", "service": %q, "raw": {"value": "/w=="}, "refused": {"code": "envelope.invalid", "message": %q}}`,
		p.name, strings.Repeat("m", 1000))
	p.wantPass(`ran 5 {"rejected": 1}`, "batch", refused)
	p.wantRows(`select split_part(type, '.', 1) || ' ' || concat_ws(' ', payload ->> 'status', payload ->> 'reason', length(payload #>> '{result,x}')) from tidemark.outbox where domain = 'commands' order by seq`,
		"result processed 900000", "result duplicate 900000", "result processed 900000", "dead_letter sql.business_rule", "result failed_terminal", "dead_letter envelope.invalid")
	// A message has 1 KB at most, of whole characters.
	p.wantRows(`select replace(payload ->> 'error_message', repeat('ä', 511), '511') from tidemark.outbox where payload ->> 'status' = 'failed_terminal'`, "!511")
	p.wantRows(`select replace(tidemark.command_message(repeat(c, n) || 'a'), repeat(c, m), '') from (values ('a', 1023, 1023), ('a', 1024, 1024), ('ä', 511, 511), ('ä', 512, 512),
		('€', 341, 341), ('€', 342, 341), ('😀', 255, 255), ('😀', 256, 256), ('😀', 9999, 256)) v (c, n, m)`, "a", "", "a", "", "a", "", "a", "", "")
	p.refused("TM005", "payload", `select tidemark.emit('d', 'a', jsonb_build_object('x', repeat('x', 1000)))`)

	// Results still have a limit: 900 KB, and 499 levels.
	tooLarge := big("d", 921600)
	_ = p.wantCode("54000", "batch", tooLarge)
	p.wantPass(`ran 6 {"failed_terminal": 1}`, "alone", tooLarge)
	p.exec(`create function app.deep(payload jsonb) returns json language sql as $$ select (repeat('[', (payload ->> 'n')::int) || repeat(']', (payload ->> 'n')::int))::json $$`)
	p.command("deep", `{"function": "app.deep", "enabled": true, "dry_run": false, "payload_schema": {"type": "object"}}`)
	p.wantPass(`ran 7 {"processed": 1}`, "batch", p.record(p.next, "e", `{"n": 499}`, `{"command": "deep"}`))
	deep := p.record(p.next, "f", `{"n": 500}`, `{"command": "deep"}`)
	_ = p.wantCode("54000", "batch", deep)
	p.wantPass(`ran 8 {"failed_terminal": 1}`, "alone", deep)
	var last struct {
		Code    string `json:"error_code"`
		Message string `json:"error_message"`
	}
	if err := json.Unmarshal([]byte(one[string](p.session, `select payload::text from tidemark.outbox where type like 'result.%' order by seq desc limit 1`)), &last); err != nil ||
		last.Code != "runtime.result_too_large" || last.Message != "the result nests deeper than 499 levels" {
		t.Errorf("%+v %v", last, err)
	}
}
