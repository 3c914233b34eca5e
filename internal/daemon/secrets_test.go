package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A header's secret comes from the configuration, in every request; a reload changes it. The table, the audit and the
// log show its name only.
func TestHeaderSecrets(t *testing.T) {
	t.Parallel()
	var tokens atomic.Int64
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"access_token": "hunter%d", "token_type": "Bearer", "expires_in": 3600}`, tokens.Add(1))
	}))
	t.Cleanup(issuer.Close)
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, `select tidemark.route_set('app', '{"options": {"secret": "app", "headers": {"X-Api-Key": {"secret": "crm"}, "Authorization": {"secret": "login"}}}}')`)
	c := settings(db)
	c.Secrets["crm"] = []config.Secret{config.NewSecret("hunter2"), config.NewSecret("older")}
	c.OAuth2 = map[string]config.OAuth2{"login": {TokenURL: issuer.URL, ClientID: "id", ClientSecret: config.NewSecret("hunter3")}}
	p := run(t, c)
	sent := func(n int) http.Header {
		t.Helper()
		execSQL(t, db, `select tidemark.emit_strict('test', 'tick')`)
		eventually(t, "a delivery", func() bool { return r.count() == n })
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.got[n-1]
	}
	for n := range 2 {
		if h := sent(n + 1); h.Get("X-Api-Key") != "hunter2" || h.Get("Authorization") != "Bearer hunter1" {
			t.Errorf("the request has %v", h)
		}
	}
	if n := tokens.Load(); n != 1 {
		t.Errorf("%d tokens were got for two requests", n)
	}
	c.Secrets = map[string][]config.Secret{"app": c.Secrets["app"], "crm": {config.NewSecret("hunter9")}}
	if _, err := p.Reload(c); err != nil {
		t.Fatal(err)
	}
	if h := sent(3); h.Get("X-Api-Key") != "hunter9" || h.Get("Authorization") != "Bearer hunter2" {
		t.Errorf("after a reload the request has %v", h)
	}
	var shown int
	if err := db.Pool.QueryRow(t.Context(), `select count(*) from tidemark.audit a where a::text like '%hunter%'`).Scan(&shown); err != nil || shown != 0 {
		t.Errorf("%d rows of the audit show a secret, %v", shown, err)
	}
	p.stop()
	if strings.Contains(p.log.String(), "hunter") {
		t.Error("the log shows a secret")
	}
}

// A delivery whose header lacks its secret waits and is never sent without it. The finding and the log give the reason.
func TestHeaderSecretIsMissing(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, `select tidemark.route_set('app', '{"options": {"unsigned": true, "headers": {"Authorization": {"secret": "crm"}}}}')`)
	c := settings(db)
	p := run(t, c)
	execSQL(t, db, `select tidemark.emit_strict('test', 'tick')`)
	const want = `worker default: options: there is no secret "crm" for header Authorization in the configuration of this daemon (secrets.crm or oauth2.crm)`
	eventually(t, "the finding", func() bool {
		var detail string
		err := db.Pool.QueryRow(context.Background(), `select detail from tidemark.finding where kind = 'route_misconfigured' and subject = 'app' and closed_at is null`).Scan(&detail)
		return err == nil && detail == want
	})
	var waits, errors int
	if err := db.Pool.QueryRow(t.Context(), `select count(*), max(error_count) from tidemark.pending`).Scan(&waits, &errors); err != nil || waits != 1 || errors != 0 {
		t.Errorf("%d wait, with %d errors, %v", waits, errors, err)
	}
	if r.count() != 0 {
		t.Error("it was sent without its header")
	}
	c.Secrets = map[string][]config.Secret{"crm": {config.NewSecret("Bearer hunter2")}}
	if _, err := p.Reload(c); err != nil {
		t.Fatal(err)
	}
	execSQL(t, db, `update tidemark.pending set next_attempt_at = now(); select tidemark.emit_strict('test', 'tick')`)
	eventually(t, "both deliveries", func() bool { return r.count() == 2 })
	for _, h := range r.got {
		if h.Get("Authorization") != "Bearer hunter2" {
			t.Errorf("the request has %v", h)
		}
	}
}

// A literal secret in a route's options, as a restored dump may bring it, is never sent; and a token cannot sign. Keys for signing and
// tokens of producers are no headers: who sets a route would read them.
func TestLiteralSecretIsRefused(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	r := newReceiver(t)
	live(t, db, r.URL)
	execSQL(t, db, `alter table tidemark.outbound_route disable trigger outbound_route_target`)
	want := map[string]string{}
	for code, o := range map[string]struct {
		options map[string]any
		want    string
	}{
		"literal": {map[string]any{"unsigned": true, "headers": map[string]any{"Cookie": "hunter2"}}, "header Cookie holds a secret in plain text"},
		"signs":   {map[string]any{"secret": "login"}, `options: secret "login" is for headers only (oauth2.login) and cannot sign`},
		"key":     {map[string]any{"unsigned": true, "headers": map[string]any{"X-Key": map[string]any{"secret": "billing"}}}, `options: secret "billing" is a signing key and cannot be used in a header: give header X-Key a secret of its own`},
		"old_key": {map[string]any{"unsigned": true, "headers": map[string]any{"X-Key": map[string]any{"secret": "rotated"}}}, `options: secret "rotated" is a signing key and cannot be used in a header: give header X-Key a secret of its own`},
		"token":   {map[string]any{"unsigned": true, "headers": map[string]any{"X-Key": map[string]any{"secret": "shop"}}}, `options: secret "shop" is the token of a producer (commands.ingress) and cannot be used in a header: give header X-Key a secret of its own`},
	} {
		options, err := json.Marshal(o.options)
		if err != nil {
			t.Fatal(err)
		}
		execSQL(t, db, `select tidemark.route_set($1, jsonb_build_object('domain', 'test', 'target_kind', 'webhook', 'target_ref', $2::text, 'options', $3::jsonb, 'enabled', true, 'dry_run', false))`, code, r.URL, options)
		want[code] = "worker default: " + o.want
	}
	c := settings(db)
	c.OAuth2 = map[string]config.OAuth2{"login": {TokenURL: "https://login.test", ClientID: "id", ClientSecret: config.NewSecret("hunter3")}}
	c.Secrets = map[string][]config.Secret{
		"billing": {config.NewSecret("whsec_" + strings.Repeat("QUJD", 11))}, "rotated": {config.NewSecret("new"), config.NewSecret("whsk_x")},
		"shop": {config.NewSecret(strings.Repeat("t", 32))},
	}
	c.Commands.Ingress.Producers = map[string]config.IngressProducer{"shop": {Secret: "shop"}}
	run(t, c)
	execSQL(t, db, `select tidemark.route_set('app', '{"enabled": false}'), tidemark.emit_strict('test', 'tick')`)
	for code, text := range want {
		eventually(t, code, func() bool {
			var detail string
			err := db.Pool.QueryRow(context.Background(), `select detail from tidemark.finding where kind = 'route_misconfigured' and subject = $1`, code).Scan(&detail)
			return err == nil && detail == text
		})
	}
	if r.count() != 0 {
		t.Errorf("%d requests were sent", r.count())
	}
}
