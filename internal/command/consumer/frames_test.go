package consumer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
)

// A registry answers requests one after the other, and the last answer for ever.
type registry struct {
	answers []registryAnswer
	asked   atomic.Int64
}

type registryAnswer struct {
	status int // 0: no answer
	body   string
}

const missing = `{"error_code": 40403, "message": "Schema not found"}`

var isJSON = registryAnswer{http.StatusOK, `{"schema": "{}", "schemaType": "JSON"}`}

func (r *registry) RoundTrip(*http.Request) (*http.Response, error) {
	n := int(r.asked.Add(1))
	a := r.answers[min(n, len(r.answers))-1]
	if a.status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

func framesOf(t *testing.T, answers ...registryAnswer) (*frames, *registry) {
	t.Helper()
	r := &registry{answers: answers}
	client, err := sr.NewClient(sr.URLs("http://registry"), sr.HTTPClient(&http.Client{Transport: r}))
	if err != nil {
		t.Fatal(err)
	}
	return newFrames(client), r
}

// Only the registry itself tells that a schema is not there, and it is asked twice before a record is refused.
func TestFramesOfAMissingSchema(t *testing.T) {
	t.Parallel()
	const notThere = "the record names schema 7, which the registry does not have"
	gone := registryAnswer{http.StatusNotFound, missing}
	for name, c := range map[string]struct {
		answers       []registryAnswer
		problem, fail string
	}{
		"missing":               {[]registryAnswer{gone}, notThere, ""},
		"of a copy behind":      {[]registryAnswer{gone, isJSON}, "", ""},
		"a page of a proxy":     {[]registryAnswer{{http.StatusNotFound, "<html>\n<p>" + strings.Repeat("x", 1000)}}, "", "commands.registry does not answer: HTTP status 404: <html> <p>" + strings.Repeat("x", 190)},
		"another code":          {[]registryAnswer{{http.StatusNotFound, `{"error_code": 404, "message": "HTTP 404 Not Found"}`}}, "", "commands.registry does not answer: HTTP status 404: HTTP 404 Not Found"},
		"a proxy at the second": {[]registryAnswer{gone, {http.StatusNotFound, "no route"}}, "", "commands.registry does not answer: HTTP status 404: no route"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, _ := framesOf(t, c.answers...)
				value, problem, err := f.now(t.Context(), []byte("\x00\x00\x00\x00\x07{}"))
				failed := ""
				if err != nil {
					failed = err.Error()
				}
				if problem != c.problem || failed != c.fail || err == nil && string(value) != "{}" {
					t.Errorf("got %q, problem %q, error %q", value, problem, failed)
				}
			})
		})
	}
}

// That a schema is not there holds for seconds, and that it is for ever.
func TestFramesForgetMissingSchemas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := registryAnswer{http.StatusNotFound, missing}
		f, r := framesOf(t, gone, gone, isJSON)
		want := func(problem bool, asked int64) {
			t.Helper()
			_, got, err := f.now(t.Context(), []byte("\x00\x00\x00\x00\x07{}"))
			if err != nil || (got != "") != problem || r.asked.Load() != asked {
				t.Fatalf("problem %q, error %v, asked %d times; want %t and %d", got, err, r.asked.Load(), problem, asked)
			}
		}
		want(true, 2)
		want(true, 2)
		time.Sleep(missingFor + time.Second)
		want(false, 3)
		time.Sleep(24 * time.Hour)
		want(false, 3)
	})
}

// A registry that answers again is no trouble any more, also if the partition whose record it was asked for has gone.
func TestFramesAskAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, r := framesOf(t, registryAnswer{}, registryAnswer{}, isJSON)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go f.ask(ctx, func() {})
		if _, _, ok := f.value([]byte("\x00\x00\x00\x00\x07{}")); ok {
			t.Fatal("it knows the schema")
		}
		synctest.Wait()
		if err := f.away(); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Fatal(err)
		}
		time.Sleep(10 * askEvery)
		synctest.Wait()
		if err := f.away(); err != nil || r.asked.Load() != 3 {
			t.Fatalf("after %d requests: %v", r.asked.Load(), err)
		}
	})
}

// Schemas that the registry does not have hold each other up no more than they hold up others: each is asked for once before any is asked
// for again.
func TestFramesAskForManyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many = 50
		gone := slices.Repeat([]registryAnswer{{http.StatusNotFound, missing}}, many)
		f, r := framesOf(t, append(append(gone, isJSON), gone...)...)
		record := func(id byte) []byte { return []byte{0, 0, 0, 0, id, '{', '}'} }
		var records []*kgo.Record
		for id := range many {
			records = append(records, &kgo.Record{Value: record(byte(id))})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go f.ask(ctx, func() {})
		f.expect(records)
		synctest.Wait()
		if f.expect([]*kgo.Record{{Value: record(many)}}); r.asked.Load() != many {
			t.Fatalf("%d requests, want %d", r.asked.Load(), many)
		}
		synctest.Wait()
		if _, problem, ok := f.value(record(many)); !ok || problem != "" {
			t.Errorf("a schema that the registry has waits for those that it does not have: %t, %s", ok, problem)
		}
		time.Sleep(askEvery + time.Millisecond)
		synctest.Wait()
		for id := range many {
			if _, problem, ok := f.value(record(byte(id))); !ok || problem == "" {
				t.Errorf("schema %d: %t, %q", id, ok, problem)
			}
		}
		if r.asked.Load() != 2*many+1 {
			t.Errorf("%d requests, want %d", r.asked.Load(), 2*many+1)
		}
	})
}
