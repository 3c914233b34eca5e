package console

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/api"
)

// query asks the API on behalf of the person of a request. The pages have no other way to the database.
type query struct {
	c    *console
	r    *http.Request
	once string // the Idempotency-Key of a write; empty: none
}

// param is a parameter of the page.
func (q query) param(name string) string { return q.r.URL.Query().Get(name) }

// get reads a resource of the API. What one browser has read just now, another gets too.
func get[T any](q query, path string, params ...string) (v T, p *api.Problem) {
	values := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] != "" {
			values.Set(params[i], params[i+1])
		}
	}
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	person, _ := api.PersonOf(q.r.Context())
	answer := q.c.cache.get(person.Role.String()+" "+path, func() answer { return q.call(http.MethodGet, path, nil) })
	if answer.problem != nil {
		return v, answer.problem
	}
	if err := json.Unmarshal(answer.body, &v); err != nil {
		return v, &api.Problem{Status: http.StatusInternalServerError, Title: "Error", Detail: "the API's answer cannot be read"}
	}
	return v, nil
}

// answer is what the API answers.
type answer struct {
	body    []byte
	problem *api.Problem
}

// call makes a request to the API.
func (q query) call(method, path string, body any) answer {
	var reader io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{problem: &api.Problem{Status: http.StatusBadRequest, Title: "Bad request", Detail: "this cannot be sent"}}
		}
		reader = bytes.NewReader(text)
	}
	// A browser that has gone does not cut off others who wait for the same answer.
	ctx := q.r.Context()
	if method == http.MethodGet {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
		ctx = limited
	}
	r, err := http.NewRequestWithContext(ctx, method, "/api/v1"+path, reader)
	if err != nil {
		return answer{problem: &api.Problem{Status: http.StatusBadRequest, Title: "Bad request", Detail: "the address is malformed"}}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.once != "" {
		r.Header.Set("Idempotency-Key", q.once)
	}
	got := &recorder{header: http.Header{}, status: http.StatusOK}
	q.c.api.ServeHTTP(got, r)
	if got.status == http.StatusOK {
		return answer{body: got.body.Bytes()}
	}
	told := api.Problem{Status: got.status, Title: http.StatusText(got.status), Detail: strings.TrimSpace(got.body.String())}
	if json.Unmarshal(got.body.Bytes(), &told) != nil {
		told.Status = got.status
	}
	return answer{problem: &told}
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// cacheFor is how old an answer may be that another browser has asked for: many open pages cost the database as much as one.
const cacheFor = 2 * time.Second

// cache keeps answers of the API for a moment.
type cache struct {
	mu   sync.Mutex
	kept map[string]kept
}

type kept struct {
	at    time.Time
	ready chan struct{} // closed once answer is there
	*answer
}

// get returns the answer to a question, asked by one at a time.
func (c *cache) get(key string, ask func() answer) answer {
	c.mu.Lock()
	now := time.Now()
	if k, known := c.kept[key]; known && now.Sub(k.at) < cacheFor {
		c.mu.Unlock()
		<-k.ready
		return *k.answer
	}
	for old, k := range c.kept {
		if now.Sub(k.at) >= cacheFor {
			delete(c.kept, old)
		}
	}
	k := kept{at: now, ready: make(chan struct{}), answer: &answer{}}
	c.kept[key] = k
	c.mu.Unlock()
	defer close(k.ready)
	*k.answer = ask()
	return *k.answer
}

// clear forgets all answers: something was changed.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = map[string]kept{}
}

// lastKnown is the last overview that was read, by role: operators see messages there that viewers may not.
type lastKnown struct {
	mu   sync.Mutex
	read map[Role]seen
}

type seen struct {
	overview api.Overview
	at       time.Time
}

func (l *lastKnown) set(role Role, o api.Overview) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read == nil {
		l.read = map[Role]seen{}
	}
	l.read[role] = seen{o, time.Now()}
}

func (l *lastKnown) get(role Role) (api.Overview, time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.read[role]
	return s.overview, s.at, known
}
