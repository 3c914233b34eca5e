package webhook_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	address := server(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		if status != 204 {
			_, _ = io.WriteString(w, "\n  because \tof\x1b[31m that \n and more")
		}
	})
	const because = ": because of [31m that"
	wait := 7 * time.Second
	retry := func(status int, text string) sink.Result {
		return sink.Result{Status: sink.Retry, After: wait, Code: fmt.Sprint("http_", status), Detail: fmt.Sprint(status, " ", text, because)}
	}
	permanent := func(status int, text string) sink.Result {
		return sink.Result{Status: sink.Permanent, Code: fmt.Sprint("http_", status), Detail: fmt.Sprint(status, " ", text, because)}
	}
	refused := func(status int, text string) sink.Result {
		r := retry(status, text)
		r.Refused = true
		return r
	}
	gone := permanent(410, "Gone")
	gone.Gone = true
	for status, want := range map[int]sink.Result{
		200: {Status: sink.Delivered},
		201: {Status: sink.Delivered},
		202: {Status: sink.Delivered},
		204: {Status: sink.Delivered},
		299: {Status: sink.Delivered},
		400: permanent(400, "Bad Request"),
		401: refused(401, "Unauthorized"),
		403: refused(403, "Forbidden"),
		404: permanent(404, "Not Found"),
		408: retry(408, "Request Timeout"),
		409: permanent(409, "Conflict"),
		410: gone,
		413: permanent(413, "Request Entity Too Large"),
		422: permanent(422, "Unprocessable Entity"),
		425: retry(425, "Too Early"),
		429: retry(429, "Too Many Requests"),
		499: {Status: sink.Permanent, Code: "http_499", Detail: "499" + because},
		500: retry(500, "Internal Server Error"),
		501: retry(501, "Not Implemented"),
		503: retry(503, "Service Unavailable"),
		505: retry(505, "HTTP Version Not Supported"),
		599: {Status: sink.Retry, After: wait, Code: "http_599", Detail: "599" + because},
		999: {Status: sink.Retry, After: wait, Code: "http_999", Detail: "999" + because},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			check(t, deliver(t, open(t, webhook.Options{URL: fmt.Sprint(address, "/", status)}), paid()), want)
		})
	}
}

// A target that compares epochs says that another copy of the database delivers to it. What it says is no more than text.
func TestAnotherCopy(t *testing.T) {
	t.Parallel()
	address := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Tidemark-Copy", "epoch 7\t came a minute ago")
		w.WriteHeader(http.StatusConflict)
	})
	check(t, deliver(t, open(t, webhook.Options{URL: address}), paid()), sink.Result{
		Status: sink.Retry, Refused: true, Code: sink.CodeCopy, Detail: "another copy of this database delivers here: epoch 7 came a minute ago",
	})
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	called := make(chan string, 1)
	other := server(t, func(_ http.ResponseWriter, r *http.Request) { called <- r.URL.Path })
	for name, test := range map[string]struct {
		status       int
		location, to string
	}{
		"elsewhere":       {301, other + "/x?token=secret", other},
		"302":             {302, "http://other.test/", "http://other.test"},
		"303":             {303, "//other.test:99/", "http://other.test:99"},
		"307":             {307, "/other?token=secret", "itself"},
		"308 to https":    {308, "https://127.0.0.1/", "https://127.0.0.1"},
		"with a password": {308, "http://ann:secret@other.test/", "http://other.test"},
		"nowhere":         {301, "", "nowhere"},
		"not to be read":  {301, "http://[::1/secret", "nowhere"},
		"an opaque URL":   {301, "mailto:secret", "nowhere"},
		"not modified":    {304, "", "nowhere"},
		"long":            {301, "http://" + strings.Repeat("a", 300), "http://" + strings.Repeat("a", 93) + "…"},
		"several choices": {300, "", "nowhere"},
		"a terminal's":    {301, "http://%1b%5b31m.test/", "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := server(t, func(w http.ResponseWriter, _ *http.Request) {
				if test.location != "" {
					w.Header().Set("Location", test.location)
				}
				w.WriteHeader(test.status)
			})
			to := strings.Replace(test.to, "itself", address, 1)
			check(t, deliver(t, open(t, webhook.Options{URL: address}), paid()), sink.Result{
				Status: sink.Permanent, Code: "redirect", Detail: fmt.Sprintf("%d %s to %s: redirects are not followed, change the URL",
					test.status, http.StatusText(test.status), to),
			})
		})
	}
	t.Cleanup(func() {
		select {
		case path := <-called:
			t.Errorf("%s was called", path)
		default:
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 5e8, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                                 0,
		"0":                                0,
		"1":                                time.Second,
		" 120 ":                            2 * time.Minute,
		"86400":                            24 * time.Hour,
		"86401":                            24 * time.Hour,
		"99999999999999999999999":          24 * time.Hour,
		"-1":                               0,
		"1.5":                              0,
		"soon":                             0,
		"Sat, 31 Jan 2026 12:00:10 GMT":    9500 * time.Millisecond,
		"Saturday, 31-Jan-26 12:01:00 GMT": 59500 * time.Millisecond,
		"Sat Jan 31 12:00:01 2026":         500 * time.Millisecond,
		"Sat, 31 Jan 2026 11:59:00 GMT":    0,
		"Fri, 31 Dec 2100 12:00:00 GMT":    24 * time.Hour,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			address := server(t, func(w http.ResponseWriter, r *http.Request) {
				if got, want := r.Header.Get("Webhook-Timestamp"), fmt.Sprint(now.Unix()); got != want {
					t.Errorf("timestamp %s, want %s", got, want)
				}
				w.Header().Set("Retry-After", text)
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			s := open(t, webhook.Options{URL: address})
			s.SetNow(func() time.Time { return now })
			check(t, deliver(t, s, paid()), sink.Result{Status: sink.Retry, After: want, Code: "http_503", Detail: "503 Service Unavailable"})
		})
	}
}

// The detail repeats the target's words, except for the payload and for secrets.
func TestDetails(t *testing.T) {
	t.Parallel()
	const repeated = "400 Bad Request: (it repeats the payload)"
	long := strings.Repeat("é", 300)
	for name, test := range map[string]struct{ answer, want string }{
		"nothing":               {"", "400 Bad Request"},
		"blank":                 {"\n \r\n\t", "400 Bad Request"},
		"a sentence":            {"no such customer", "400 Bad Request: no such customer"},
		"not UTF-8":             {"a\xff\xfeb", "400 Bad Request: a�b"},
		"a terminal's controls": {"a\x00\x1b]0;x\x07\u009b\u202e\u2028b", "400 Bad Request: a ]0;x b"},
		"long":                  {long, "400 Bad Request: " + long[:400] + "…"},
		"the payload":           {`{"error":"bad","input":{"total": 12.50, "name": "Ünï 5%"}}`, repeated},
		"a part of the payload": {"bad: " + `12.50, "nam`, repeated},
		"a word of the payload": {"name and total are wrong", "400 Bad Request: name and total are wrong"},
		"the query":             {"POST /a?token=topsecret&x=1 is wrong", "400 Bad Request: POST /a?… is wrong"},
		"a value of the query":  {"topsecret is wrong", "400 Bad Request: … is wrong"},
		"a token in the path":   {"POST /T0123456789ABCDEF0/hook is wrong", "400 Bad Request: POST /…/hook is wrong"},
		"a header":              {"Authorization: Bearer sesame+sesame", "400 Bad Request: Authorization: …"},
		"credentials":           {"sesame+sesame", "400 Bad Request: …"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := server(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, test.answer, http.StatusBadRequest) })
			s := open(t, webhook.Options{
				URL:     address + "/T0123456789ABCDEF0/hook?token=topsecret&x=1",
				Headers: map[string]string{"Authorization": "Bearer sesame+sesame"},
			})
			check(t, deliver(t, s, paid()), sink.Result{Status: sink.Permanent, Code: "http_400", Detail: test.want})
		})
	}
}

// The result depends on the status. The sink reads the body for a second and up to a limit, then drops the connection.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		write func(w *bufio.Writer) bool // false: stop writing
		most  int                        // bytes that the sink reads, roughly
	}{
		"large": {func(w *bufio.Writer) bool {
			_, err := w.WriteString(strings.Repeat("x", 1<<16))
			return err == nil
		}, 8 << 20},
		"byte by byte": {func(w *bufio.Writer) bool {
			_ = w.WriteByte('x')
			time.Sleep(50 * time.Millisecond) // this is what is tested
			return w.Flush() == nil
		}, 1 << 10},
	} {
		for _, status := range []int{200, 500} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				t.Parallel()
				written := make(chan int, 1)
				address := listen(t, func(c net.Conn) {
					readRequest(c)
					w := bufio.NewWriter(c)
					fmt.Fprintf(w, "HTTP/1.1 %d \r\nContent-Length: 1000000000\r\n\r\n", status)
					_ = w.Flush()
					n := 0
					for test.write(w) {
						n++
					}
					written <- n
				})
				begin := time.Now()
				got := deliver(t, open(t, webhook.Options{URL: address}), paid())
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
				if got.Status != map[int]sink.Status{200: sink.Delivered, 500: sink.Retry}[status] {
					t.Errorf("got %+v", got)
				}
				<-written // the connection was dropped
			})
		}
	}
}

func TestMaxResponse(t *testing.T) {
	t.Parallel()
	peers := make(chan string, 10)
	address := server(t, func(w http.ResponseWriter, r *http.Request) {
		peers <- r.RemoteAddr
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	})
	for most, kept := range map[int]bool{1: false, 999: false, 1000: true, 5000: true, 1 << 30: true} {
		s := open(t, webhook.Options{URL: address, MaxResponse: most})
		for range 2 {
			check(t, deliver(t, s, paid()), sink.Result{Status: sink.Delivered})
		}
		if first, second := <-peers, <-peers; (first == second) != kept {
			t.Errorf("limit %d: connections %s and %s", most, first, second)
		}
	}
}

func TestHeaderValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Euro € 😀":  "Euro%20%E2%82%AC%20%F0%9F%98%80", // the example of the specification
		"a/b?c=d;e": "a/b?c=d;e",
		`"50%"`:     "%2250%25%22",
		"a\r\nb: c": "a%0D%0Ab:%20c",
		"\xff\x7f":  "%FF%7F",
		"":          "",
	} {
		if got := webhook.HeaderValue(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		value := webhook.HeaderValue(text)
		var back []byte
		for i := 0; i < len(value); i++ {
			if value[i] <= ' ' || value[i] > '~' || value[i] == '"' {
				t.Fatalf("%q has a character that must be encoded", value)
			}
			if value[i] != '%' {
				back = append(back, value[i])
				continue
			}
			b, err := strconv.ParseUint(value[i+1:i+3], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			back = append(back, byte(b))
			i += 2
		}
		if string(back) != text {
			t.Fatalf("%q became %q", text, back)
		}
	})
}
