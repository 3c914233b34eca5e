package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Whatever is refused is a problem, also where no operation answers.
func TestRefusalsAreProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, p := range []Person{{}, vera, ada} {
		w.refuses(404, "", p, "GET", "/nope", "")
		w.refuses(404, "", p, "POST", "/nope", "{}")
		w.refuses(405, "", p, "DELETE", "/routes/hook", "")
	}
	if got := w.ask(ada, "DELETE", "/routes/hook", "").Header().Get("Allow"); !strings.Contains(got, "PATCH") {
		t.Errorf("Allow: %s", got)
	}
	long := `{"reason": "` + strings.Repeat("x", maxBody) + `"}`
	w.refuses(413, "", oscar, "POST", "/workers/default/pause", long)
	w.refuses(413, "", oscar, "POST", "/workers/default/pause", long, "Idempotency-Key: k")
	w.refuses(412, "", oscar, "POST", "/workers/default/pause", `{"reason": "calm"}`, `If-Match: "x"`)
	for _, path := range []string{"/workers/default/pause", "/dead-letter-jobs", "/routes/hook/test", "/workers/default/rewind"} {
		body := `{"reason": " \t ", "to_seq": 0}`
		if path == "/dead-letter-jobs" {
			body = `{"action": "discard", "route": "hook", "reason": " "}`
		}
		if path != "/workers/default/rewind" {
			body = strings.Replace(body, `, "to_seq": 0`, "", 1)
		}
		w.refuses(422, "TM005", ada, "POST", path, body)
	}
	got := httptest.NewRecorder()
	Refuse(got, OtherSite(true))
	var told Problem
	if err := json.Unmarshal(got.Body.Bytes(), &told); err != nil || told.Status != 403 || got.Header().Get("Content-Type") != problemType {
		t.Errorf("%s, %v", got.Body, err)
	}
}

// withoutBody sends a write whose body does not come, with these headers, and returns the status and the type of the answer.
func withoutBody(t *testing.T, server *httptest.Server, headers string) (status int, contentType string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "POST /api/v1/workers/default/pause HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: 1000\r\n\r\n{", headers)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", headers, err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header.Get("Content-Type")
}

// A body that does not arrive is no body that is too long.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.api.ServeHTTP(out, r.WithContext(WithPerson(r.Context(), oscar)))
	}))
	defer server.Close()
	for _, key := range []string{"", "Idempotency-Key: k\r\n"} {
		if status, of := withoutBody(t, server, key); status != http.StatusRequestTimeout || of != problemType {
			t.Errorf("%q: %d %s", key, status, of)
		}
	}
}

// Who has not signed in is told so before the body has come, which it need never do.
func TestBodiesOfStrangersAreNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(w.api)
	defer server.Close()
	for _, key := range []string{"", "Idempotency-Key: k\r\n"} {
		if status, of := withoutBody(t, server, key); status != http.StatusUnauthorized || of != problemType {
			t.Errorf("%q: %d %s", key, status, of)
		}
	}
}

// A client that has an answer gets 304, in each form in which it may say so.
func TestTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tag := w.ask(vera, "GET", "/routes", "").Header().Get("ETag")
	if head := w.ask(vera, "HEAD", "/routes", ""); head.Code != http.StatusOK || tag == "" || head.Header().Get("ETag") != tag {
		t.Errorf("HEAD: %d %s, not %s", head.Code, head.Header(), tag)
	}
	for has, want := range map[string]int{
		tag: 304, "W/" + tag: 304, `"a", ` + tag: 304, `W/"a",W/` + tag: 304, "*": 304, `"a"`: 200, strings.Trim(tag, `"`): 200,
	} {
		for _, method := range []string{"GET", "HEAD"} {
			if got := w.ask(vera, method, "/routes", "", "If-None-Match: "+has); got.Code != want {
				t.Errorf("%s with %s: %d, want %d", method, has, got.Code, want)
			}
		}
	}
	w.refuses(404, "TM004", vera, "GET", "/routes/nope", "", "If-None-Match: *")
}
