package consumer

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/sr"
)

// numbers is a registry that answers for some numbers with a status, as Confluent's does for those that it cannot read; it has all others.
type numbers map[string]int

func (n numbers) RoundTrip(q *http.Request) (*http.Response, error) {
	a := isJSON
	if status, odd := n[path.Base(q.URL.Path)]; odd {
		a = registryAnswer{status, fmt.Sprintf(`{"error_code": %d, "message": "HTTP %d"}`, status, status)}
	}
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

// What a registry says of one number alone is that record's problem, and no trouble of the registry, unless it is about who asks.
func TestFramesOfOddNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id            uint32
		registry      numbers
		problem, fail string
	}{
		{7, numbers{"7": 404}, "the record names schema 7, for which the registry answers with HTTP status 404", ""},
		{7, numbers{"7": 400}, "the record names schema 7, for which the registry answers with HTTP status 400", ""},
		{1, numbers{"1": 404}, "the record names schema 1, for which the registry answers with HTTP status 404", ""},
		{7, numbers{"7": 404, "1": 404}, "", "commands.registry does not answer: HTTP status 404: HTTP 404"},
		{7, numbers{"7": 401}, "", "commands.registry does not answer: HTTP status 401: HTTP 401"},
		{7, numbers{"7": 403}, "", "commands.registry does not answer: HTTP status 403: HTTP 403"},
		{7, numbers{"7": 429}, "", "commands.registry does not answer: HTTP status 429: HTTP 429"},
		{7, numbers{"7": 500}, "", "commands.registry does not answer: HTTP status 500: HTTP 500"},
		{math.MaxInt32, numbers{}, "", ""},
		{math.MaxInt32 + 1, numbers{"1": 500}, "the record names schema 2147483648, and no registry has numbers above 2147483647", ""},
		{math.MaxUint32, numbers{"1": 500}, "the record names schema 4294967295, and no registry has numbers above 2147483647", ""},
	} {
		t.Run(fmt.Sprint(c.id, c.registry), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, err := sr.NewClient(sr.URLs("http://registry"), sr.HTTPClient(&http.Client{Transport: c.registry}))
				if err != nil {
					t.Fatal(err)
				}
				record := []byte{0, byte(c.id >> 24), byte(c.id >> 16), byte(c.id >> 8), byte(c.id), '{', '}'}
				value, problem, err := newFrames(client).now(t.Context(), record)
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
