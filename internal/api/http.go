package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Refuse answers a request with a problem.
func Refuse(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone: nothing can receive the error
}

// OtherSite is why a request that a page of another site makes is refused, as a program or a person is told.
func OtherSite(program bool) *Problem {
	hint := "Nothing was changed. Open the page in this console, and send its form there."
	if program {
		hint = "Programs send no Origin and no Sec-Fetch-Site."
	}
	return problem(http.StatusForbidden, "this cross-origin request comes from a page of another site", hint)
}

// known refuses what is no operation by a problem, as the operations do: a mux answers with plain text.
func known(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		answer := record(mux, r, http.Header{})
		if allowed := answer.header.Get("Allow"); answer.Status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", allowed)
			Refuse(w, problem(answer.Status, r.Method+" is no method of "+r.URL.Path, "It has "+allowed+"."))
			return
		}
		Refuse(w, problem(http.StatusNotFound, "unknown path "+r.URL.Path, "/api/v1/openapi.json lists the paths."))
	})
}

// bodyLimit bounds how long the body of a request takes to arrive, as huma does where it reads it.
const bodyLimit = 5 * time.Second

// prepared hashes writes that carry an Idempotency-Key, and tags answers: a GET whose answer the client has is 304.
func prepared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			tagged(w, r, next)
			return
		}
		if _, known := PersonOf(r.Context()); !known {
			// Without the body: neither here, nor by the server, which before an answer reads on unless the connection ends with it.
			w.Header().Set("Connection", "close")
			next.ServeHTTP(w, r)
			return
		}
		if r.Header.Get("If-Match") != "" {
			Refuse(w, problem(http.StatusPreconditionFailed, "nothing was done: writes take no If-Match", "Leave it out. The audit has what others changed."))
			return
		}
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			body, refused := bodyOf(w, r)
			if refused != nil {
				Refuse(w, refused)
				return
			}
			hash := sha256.New()
			fmt.Fprintf(hash, "%s %s\n%s", r.Method, r.URL.RequestURI(), body)
			asked := r
			r = r.WithContext(context.WithValue(r.Context(), requestKey{}, request{key, hash.Sum(nil)}))
			r.Body = io.NopCloser(bytes.NewReader(body))
			defer func() { asked.Pattern = r.Pattern }() // for metrics
		}
		next.ServeHTTP(w, r)
	})
}

// bodyOf reads the body of a request.
func bodyOf(w http.ResponseWriter, r *http.Request) ([]byte, *Problem) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyLimit)) // within this process there is no connection
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var long *http.MaxBytesError
	var network interface{ Timeout() bool }
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, &long):
		return nil, problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", maxBody), "")
	case errors.As(err, &network) && network.Timeout():
		return nil, problem(http.StatusRequestTimeout, "the body did not arrive within "+bodyLimit.String(), "Send the request again.")
	}
	return nil, problem(http.StatusBadRequest, "the body cannot be read", "Send the request again.")
}

// tagged answers a GET or a HEAD with an ETag, or 304 where the client has that answer.
func tagged(w http.ResponseWriter, r *http.Request, next http.Handler) {
	answer := record(next, r, w.Header())
	if answer.Status == http.StatusOK {
		sum := sha256.Sum256(answer.Body.Bytes())
		tag := `"` + hex.EncodeToString(sum[:12]) + `"`
		w.Header().Set("ETag", tag)
		for has := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
			if has = strings.TrimSpace(has); has == "*" || strings.TrimPrefix(has, "W/") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body.Bytes()) // the client is gone: nothing can receive the error
}

// Answer is what a handler has written.
type Answer struct {
	Status int
	Body   bytes.Buffer
	header http.Header
}

// Ask makes a request of the API within this process.
func Ask(handler http.Handler, r *http.Request) *Answer { return record(handler, r, http.Header{}) }

// record keeps what a handler writes, but for the header, which is this one.
func record(handler http.Handler, r *http.Request, header http.Header) *Answer {
	a := &Answer{Status: http.StatusOK, header: header}
	handler.ServeHTTP(a, r)
	return a
}

// Header implements http.ResponseWriter.
func (a *Answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) { a.Status = status }

// Write implements http.ResponseWriter.
func (a *Answer) Write(b []byte) (int, error) { return a.Body.Write(b) }
