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

// name is what a part of the page's path names.
func (q query) name(parameter string) string { return fromSegment(q.r.PathValue(parameter)) }

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
	v, _, p = recent[T](q, path, cacheFor)
	return v, p
}

// recent reads a resource of the API that may be as old as age, and when it was read. Where it is older than others may be, it is read
// again meanwhile.
func recent[T any](q query, path string, age time.Duration) (v T, at time.Time, p *api.Problem) {
	person, _ := api.PersonOf(q.r.Context())
	answer := q.c.cache.get(keyOf(person.Role, path), age, func() { api.EndShared(q.r.Context()) }, func(meanwhile bool) answer {
		asker := q
		if meanwhile {
			asker.r = q.r.WithContext(api.Unshared(q.r.Context()))
		}
		return asker.call(http.MethodGet, path, nil)
	})
	if answer.problem != nil {
		return v, at, answer.problem
	}
	if err := json.Unmarshal(answer.body, &v); err != nil {
		return v, at, &api.Problem{Status: http.StatusInternalServerError, Title: "Error", Detail: "the API's answer cannot be read"}
	}
	return v, answer.at, nil
}

// answer is what the API answers.
type answer struct {
	body    []byte
	problem *api.Problem
	at      time.Time // when it was asked for
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
	began := time.Now()
	got := api.Ask(q.c.api, r)
	if got.Status == http.StatusOK {
		return answer{body: got.Body.Bytes(), at: began}
	}
	told := api.Problem{Status: got.Status, Title: http.StatusText(got.Status), Detail: strings.TrimSpace(got.Body.String())}
	if json.Unmarshal(got.Body.Bytes(), &told) != nil {
		told.Status = got.Status
	}
	return answer{problem: &told}
}

// cacheFor is how old an answer may be that another browser has asked for: many open pages cost the database as much as one.
const cacheFor = 2 * time.Second

// cache keeps answers of the API for a moment.
type cache struct {
	mu      sync.Mutex
	kept    map[string]*kept
	cleared int // how often
}

type kept struct {
	at       time.Time     // when it was asked for
	until    time.Time     // when it is forgotten
	ready    chan struct{} // closed once answer is there
	answer   answer
	renewing bool
}

// get returns the answer to a question, asked by one at a time: the others wait, and call waits before. An answer that is older than
// cacheFor, and not yet as old as age, is given as it is, and asked for meanwhile.
func (c *cache) get(key string, age time.Duration, waits func(), ask func(meanwhile bool) answer) answer {
	c.mu.Lock()
	now := time.Now()
	if k, known := c.kept[key]; known && now.Sub(k.at) < age {
		renew := now.Sub(k.at) >= cacheFor && !k.renewing
		k.renewing = k.renewing || renew
		c.mu.Unlock()
		if renew {
			go c.renew(key, k, func() answer { return ask(true) })
		}
		select {
		case <-k.ready:
		default:
			waits()
			<-k.ready
		}
		return k.answer
	}
	for old, k := range c.kept {
		if now.After(k.until) {
			delete(c.kept, old)
		}
	}
	k := &kept{at: now, until: now.Add(age), ready: make(chan struct{})}
	c.kept[key] = k
	c.mu.Unlock()
	defer close(k.ready)
	k.answer = ask(false)
	return k.answer
}

// keyOf names what a role may know of a resource.
func keyOf(role Role, path string) string { return role.String() + " " + path }

// renew asks again, unless an act clears what is known: then the answer may be from before it.
func (c *cache) renew(key string, old *kept, ask func() answer) {
	fresh := &kept{at: time.Now(), ready: old.ready}
	fresh.until = fresh.at.Add(old.until.Sub(old.at))
	fresh.answer = ask()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept[key] == old {
		c.kept[key] = fresh
	}
}

// clear forgets all answers: something was changed.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = map[string]*kept{}
	c.cleared++
}

// forget forgets what was asked for before a change was seen, but for what may be older than cacheFor.
func (c *cache) forget(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, k := range c.kept {
		if k.at.Before(at) && k.until.Sub(k.at) <= cacheFor {
			delete(c.kept, key)
		}
	}
}

// age tells how often all was forgotten.
func (c *cache) age() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cleared
}

// put keeps an answer to a question that was found with another one, unless all was forgotten since age: then it may be from before an
// act.
func (c *cache) put(key string, a answer, until time.Time, age int) {
	k := &kept{at: a.at, until: until, ready: make(chan struct{}), answer: a}
	close(k.ready)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cleared == age {
		c.kept[key] = k
	}
}

// lastKnown is the last overview that was read, by role: operators see messages there that viewers may not.
type lastKnown struct {
	mu   sync.Mutex
	read map[Role]seen
}

type seen struct {
	overview overview
	at       time.Time
}

func (l *lastKnown) set(role Role, o overview) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read == nil {
		l.read = map[Role]seen{}
	}
	l.read[role] = seen{o, time.Now()}
}

func (l *lastKnown) get(role Role) (overview, time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.read[role]
	return s.overview, s.at, known
}
