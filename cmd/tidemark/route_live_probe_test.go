package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A test delivery is signed, has the secrets of its headers, and is marked; its output contains no secret.
func TestRouteTest(t *testing.T) {
	t.Parallel()
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	type request struct {
		header http.Header
		body   string
		signer string
	}
	came := make(chan request, 4)
	var status atomic.Int32
	status.Store(http.StatusOK)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- request{r.Header, string(body), signedBy(r, body, map[string]string{"shop": key})}
		w.WriteHeader(int(status.Load()))
		_, _ = fmt.Fprintf(w, "what is %s", r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(receiver.Close)
	db := tidemarktest.NewDB(t)
	for _, sql := range []string{
		`select tidemark.stage_set('live', 'test')::text`, `select tidemark.gate_set('routes.enabled', true)::text`, `select tidemark.gate_set('worker.default.enabled', true)::text`,
		fmt.Sprintf(`select tidemark.route_set('hook', '{"domain": "shop", "target_kind": "webhook", "target_ref": "%s", "options": {"secret": "shop", "headers": {"X-Api-Key": {"secret": "crm"}}}}')::text`, receiver.URL),
	} {
		answer(t, db, sql)
	}
	file := filepath.Join(t.TempDir(), "tidemark.yaml")
	if err := os.WriteFile(file, []byte("secrets: {shop: "+key+", crm: hunter2}\nwebhook: {allow: [127.0.0.0/8]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	test := func() (output string, err error) {
		text, err := program(t, db.URL, "route", "test", "hook", "--config", file, "-o", "json", "--reason", "first").CombinedOutput()
		if strings.Contains(string(text), "hunter2") || strings.Contains(string(text), key) {
			t.Errorf("it shows a secret: %s", text)
		}
		return string(text), err
	}
	text, err := test()
	if err != nil || !strings.Contains(text, `"outcome":"delivered","error_code":"","detail":""`) {
		t.Fatalf("%v: %s", err, text) // nothing may have come
	}
	got := <-came
	if got.signer != "shop" || got.header.Get("X-Api-Key") != "hunter2" || got.header.Get("Tidemark-Test") != "true" {
		t.Errorf("signed by %s: %v", got.signer, got.header)
	}
	for _, want := range []string{`"test":true`, `"type":"tidemark.test"`, `"data":{"test": true, "route": "hook"}`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	status.Store(http.StatusServiceUnavailable)
	if text, err = test(); err == nil || !strings.Contains(text, `"outcome":"failed","error_code":"http_503","detail":"503 Service Unavailable: what is …"`) {
		t.Errorf("%v: %s", err, text)
	}
	if got := answer(t, db, `select string_agg(after ->> 'outcome', ' ' order by id) from tidemark.audit where action = 'route_test'`); got != "begun delivered begun failed" {
		t.Errorf("on record is %s", got)
	}
	// The outcome is shown even if it cannot be recorded.
	status.Store(http.StatusOK)
	if _, err := db.Pool.Exec(t.Context(), `create function public.full() returns trigger language plpgsql as $$ begin raise 'the disk is full'; end $$;
		create trigger full_disk before insert on tidemark.audit for each row when (new.after ->> 'outcome' = 'delivered') execute function public.full()`); err != nil {
		t.Fatal(err)
	}
	if text, err = test(); err == nil || !strings.Contains(text, `"outcome":"delivered"`) || !strings.Contains(text, "the disk is full") {
		t.Errorf("%v: %s", err, text)
	}
	if got := answer(t, db, `select count(*)::text from tidemark.audit a where a::text like '%hunter2%'`); got != "0" {
		t.Error("the audit shows a secret")
	}
}
