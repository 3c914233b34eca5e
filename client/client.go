// Package client calls the JSON API of a Tidemark console or daemon. Its types and methods are made from the OpenAPI document of
// the API, so there is a method for each of its operations.
//
//	c := client.Client{Address: "https://tidemark.example.com", Token: os.Getenv("TIDEMARK_TOKEN")}
//	health, err := c.GetHealth(ctx)
//
// A refusal is a *Problem, which carries the code of Tidemark and a hint. Lists take the Next of the part before as After,
// those that have no After as Before.
package client

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config generate/config.yaml ../internal/api/openapi.json

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Client is an API at an address. It may be used by several goroutines at once.
type Client struct {
	// Address is the console.url of the server: its scheme, host and the prefix of its pages, if any. Required.
	Address string

	// Token goes with each request as a bearer token. Default: none, for a server whose HTTP client signs in otherwise.
	Token string

	// HTTP sends the requests. Default: http.DefaultClient, which has no time limit: give a context with one.
	HTTP *http.Client
}

// Error is what was refused, and what to do.
func (p *Problem) Error() string {
	text := p.Detail
	if p.Code != "" {
		text += " (" + p.Code + ")"
	}
	if p.Hint != "" {
		text += ". " + p.Hint
	}
	return text
}

type keyOfContext struct{}

// WithIdempotencyKey returns a context whose write is done once, however often it is asked for with this key within a day. Without
// one each write has a key of its own: http.Transport may send it again over a broken connection, but a second call is a second write.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

// maxAnswer is the longest answer that is read. The longest lists have 500 items.
const maxAnswer = 64 << 20

// do makes a request and reads its answer into out.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, out any) error {
	address := strings.TrimSuffix(c.Address, "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("tidemark: %s %s: %w", method, path, err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("tidemark: %w", err)
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if method != http.MethodGet {
		key, given := ctx.Value(keyOfContext{}).(string)
		if !given {
			key = rand.Text()
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	sender := c.HTTP
	if sender == nil {
		sender = http.DefaultClient
	}
	answer, err := sender.Do(r)
	if err != nil {
		return fmt.Errorf("tidemark: %w", err)
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer)); err != nil {
		return fmt.Errorf("tidemark: %s %s: %w", method, path, err)
	}
	if answer.StatusCode != http.StatusOK {
		return refusal(answer.StatusCode, text)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a payload's numbers may be longer than a float64
	if err := decoder.Decode(out); err != nil {
		return fmt.Errorf("tidemark: %s %s does not answer as the API does: is %s the address of a console? %w", method, path, c.Address, err)
	}
	return nil
}

// refusal reads a problem. What is none, such as a proxy's page, counts by its status.
func refusal(status int, text []byte) error {
	var p Problem
	if json.Unmarshal(text, &p) != nil || p.Detail == "" {
		p = Problem{Title: http.StatusText(status), Detail: fmt.Sprintf("tidemark: answered %d %s: %.200s", status, http.StatusText(status), text)}
	}
	p.Status = int64(status)
	return &p
}

// path puts values where a pattern has {names}.
func path(pattern string, values ...any) string {
	for _, v := range values {
		before, rest, _ := strings.Cut(pattern, "{")
		_, after, _ := strings.Cut(rest, "}")
		pattern = before + url.PathEscape(fmt.Sprint(v)) + after
	}
	return pattern
}

// add adds a parameter that is not zero.
func add(query url.Values, name string, value any) {
	if at, is := value.(time.Time); is && !at.IsZero() {
		value = at.Format(time.RFC3339Nano)
	}
	if list, is := value.([]string); is {
		value = strings.Join(list, ",")
	}
	if !reflect.ValueOf(value).IsZero() {
		query.Set(name, fmt.Sprint(value))
	}
}
