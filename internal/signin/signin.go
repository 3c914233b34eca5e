// Package signin tells who makes a request to the console or the API: by a password, a bearer token, an OpenID Connect
// provider, or the header of a trusted proxy. A browser keeps a signed cookie.
package signin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/tidemarkhq/tidemark/internal/api"
	"github.com/tidemarkhq/tidemark/internal/loopback"
)

// User signs in with a password.
type User struct {
	PasswordHash string // bcrypt
	Role         api.Role
}

// Token is a bearer token of a program.
type Token struct {
	SHA256 string // of the token, in hex
	Role   api.Role
}

// Proxy is a reverse proxy that says in a header who has signed in there.
type Proxy struct {
	Header string         // such as X-Forwarded-User
	From   []netip.Prefix // the addresses of the proxy; the header is ignored from others
	Roles  map[string]api.Role
	Role   api.Role // of those who are not in Roles; 0: they are refused
}

// Options configure a SignIn. Without Users, Tokens, OIDC and Proxy everyone is the person "local" with the role admin.
type Options struct {
	Users  map[string]User
	Tokens map[string]Token
	OIDC   *OIDC
	Proxy  *Proxy
	// Behind are the addresses of the proxies that this server is behind. Their X-Forwarded-For tells a client's address.
	Behind []netip.Prefix
	// Key signs sessions. Servers that share sessions have the same. Default: random, so a restart signs everyone out.
	Key []byte
	// URL is how browsers reach the server; empty: by its address or localhost.
	URL *url.URL
	// Prefix of all paths, without a slash at the end.
	Prefix string
	// Note records a sign-in; outcome is signed in, refused or signed out.
	Note func(ctx context.Context, person, outcome, detail string) error
	Log  *slog.Logger
}

// Open reports that anyone who reaches the server may do everything.
func (o Options) Open() bool {
	return len(o.Users) == 0 && len(o.Tokens) == 0 && o.OIDC == nil && o.Proxy == nil
}

// SignIn tells who makes requests.
type SignIn struct {
	Options
	tries     tries
	comparing sync.Mutex
	unnamed   sync.Once // a proxy that is not in Behind was logged

	discovering sync.Mutex
	discovery   *discovery // the last one; nil: the provider was not asked yet
	now         func() time.Time
}

// session is how long a browser stays signed in.
const session = 8 * time.Hour

// New checks the options.
func New(o Options) (*SignIn, error) {
	for _, name := range slices.Sorted(maps.Keys(o.Users)) {
		if _, err := bcrypt.Cost([]byte(o.Users[name].PasswordHash)); err != nil {
			return nil, fmt.Errorf("user %q: password_hash is not a bcrypt hash: make one with: tidemark console --hash-password", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Tokens)) {
		if sum, err := hex.DecodeString(o.Tokens[name].SHA256); err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("token %q: sha256 is not the SHA-256 of a token in hex", name)
		}
	}
	if len(o.Key) == 0 {
		o.Key = make([]byte, 32)
		_, _ = rand.Read(o.Key) // it never fails
	}
	return &SignIn{Options: o, now: time.Now}, nil
}

// Handler serves the sign-in pages, and next to people who have signed in. It refuses requests that another site's page makes
// in the reader's browser.
func (s *SignIn) Handler(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+s.Prefix+"/sign-in", s.page)
	mux.HandleFunc("POST "+s.Prefix+"/sign-in", s.password)
	mux.HandleFunc("POST "+s.Prefix+"/sign-out", s.signOut)
	if s.OIDC != nil {
		mux.HandleFunc("GET "+s.Prefix+"/sign-in/provider", s.toProvider)
		mux.HandleFunc("GET "+s.Prefix+"/sign-in/callback", s.fromProvider)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		person, err := s.identify(r)
		switch {
		case err == nil:
			next.ServeHTTP(w, r.WithContext(api.WithPerson(r.Context(), person)))
		case errors.Is(err, errTooMany):
			s.tooMany(w, r, r.URL.RequestURI())
		case s.isAPI(r), s.isStatic(r):
			if len(s.Users) > 0 || len(s.Tokens) > 0 {
				w.Header().Set("WWW-Authenticate", `Bearer realm="tidemark"`)
			}
			next.ServeHTTP(w, r) // the API refuses an unknown client, with a problem
		case r.Method != http.MethodGet:
			to := ""
			if from, err := url.Parse(r.Referer()); err == nil {
				to = from.RequestURI() // the page whose form it is
			}
			s.show(w, http.StatusUnauthorized, "The session is over, and nothing was changed. Sign in, and send the form again.", to)
		default:
			http.Redirect(w, r, s.Prefix+"/sign-in?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		}
	})
	var crossOrigin http.CrossOriginProtection
	crossOrigin.SetDenyHandler(http.HandlerFunc(s.otherSite))
	return s.guard(crossOrigin.Handler(mux))
}

// isAPI tells whether a program reads the answer.
func (s *SignIn) isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, s.Prefix+"/api/") }

// isStatic tells whether the request is for a file of the pages, which are no secret.
func (s *SignIn) isStatic(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, s.Prefix+"/static/")
}

// guard refuses names of this server that a stranger's DNS could have made, and sets the headers of all answers.
func (s *SignIn) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !s.known(r.Host) && !s.isStatic(r) {
			s.unknownHost(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *SignIn) known(host string) bool {
	if s.URL != nil && strings.EqualFold(host, s.URL.Host) {
		return true
	}
	return loopback.IsSafeHost(host)
}

var (
	errUnknown = errors.New("not signed in")
	errTooMany = errors.New("too many refused sign-ins")
)

// identify tells who makes the request.
func (s *SignIn) identify(r *http.Request) (api.Person, error) {
	if s.Open() {
		return api.Person{Name: "local", Role: api.Admin}, nil
	}
	if s.Proxy != nil {
		if person, ok := s.Proxy.person(r); ok {
			return person, nil
		}
	}
	if name, password, ok := r.BasicAuth(); ok {
		return s.check(r, name, password)
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return s.token(r, token)
	}
	if cookie, err := r.Cookie(cookieName); err == nil {
		return s.session(cookie.Value)
	}
	return api.Person{}, errUnknown
}

// person is who the proxy says it is, if the request comes from the proxy.
func (p *Proxy) person(r *http.Request) (api.Person, bool) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	name := r.Header.Get(p.Header)
	if err != nil || name == "" || len(r.Header.Values(p.Header)) != 1 ||
		!within(p.From, from.Addr().Unmap()) {
		return api.Person{}, false
	}
	role, known := p.Roles[name]
	if !known {
		role = p.Role
	}
	return api.Person{Name: name, Role: role}, role >= api.Viewer
}

// noHash is compared with where there is no such user, so that the time of an answer does not tell which names exist.
var noHash = sync.OnceValue(func() []byte {
	hash, _ := bcrypt.GenerateFromPassword([]byte("none"), bcrypt.DefaultCost) // it fails for long passwords only
	return hash
})

// check tells whether the password is right.
func (s *SignIn) check(r *http.Request, name, password string) (api.Person, error) {
	right, err := s.compare(s.counters(r, name), name, password)
	switch {
	case err != nil:
		return api.Person{}, err
	case !right:
		return api.Person{}, s.refused(r, name, "wrong name or password")
	}
	return api.Person{Name: name, Role: s.Users[name].Role}, nil
}

// compare compares one password at a time: guesses that come together are counted like those that come one by one.
func (s *SignIn) compare(counters []counter, name, password string) (right bool, err error) {
	s.comparing.Lock()
	defer s.comparing.Unlock()
	if !s.tries.allowed(s.now(), counters...) {
		return false, errTooMany
	}
	user, known := s.Users[name]
	hash := []byte(user.PasswordHash)
	if !known {
		hash = noHash()
	}
	if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil || !known {
		s.tries.failed(counters...)
		return false, nil
	}
	s.tries.succeeded(counters...)
	return true, nil
}

// token tells whose token it is. A right one counts whatever others have tried from the same address, such as a proxy's: tokens
// are too long to be guessed.
func (s *SignIn) token(r *http.Request, token string) (api.Person, error) {
	sum := sha256.Sum256([]byte(token))
	var found api.Person
	for name, t := range s.Tokens {
		want, _ := hex.DecodeString(t.SHA256) // New has checked it
		if subtle.ConstantTimeCompare(sum[:], want) == 1 {
			found = api.Person{Name: name, Role: t.Role}
		}
	}
	switch {
	case found.Name != "":
		return found, nil
	case !s.tries.allowed(s.now(), counter{ofClient, s.network(r)}):
		return found, errTooMany
	}
	s.tries.failed(counter{ofClient, s.network(r)})
	return found, s.refused(r, "", "unknown token")
}

// refused records a refused sign-in.
func (s *SignIn) refused(r *http.Request, name, why string) error {
	s.note(r, name, "refused", why)
	return errUnknown
}

// noteLimit is how long a sign-in waits to be recorded.
const noteLimit = 5 * time.Second

// note records a sign-in, also of a client that has closed its side of the connection: it may still read the answer.
func (s *SignIn) note(r *http.Request, name, outcome, detail string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), noteLimit)
	defer cancel()
	if err := s.Note(ctx, name, outcome, detail+", from "+s.client(r)); err != nil {
		s.Log.WarnContext(r.Context(), "cannot record a sign-in", "outcome", outcome, "error", err)
	}
}

// client is the address of the other side. A proxy says whose request it passes on: each appends to X-Forwarded-For the address that
// it sees, so what stands before the first that is no proxy of ours is made up.
func (s *SignIn) client(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	at := from.Addr().Unmap()
	if r.Header.Get("X-Forwarded-For") != "" && !within(s.Behind, at) {
		s.unnamed.Do(func() {
			s.Log.WarnContext(r.Context(), "sign-ins come through a proxy that console.proxy.from does not name: all of them count as one client", "proxy", at)
		})
	}
	passed := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(passed) {
		before, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || !within(s.Behind, at) {
			break
		}
		at = before.Unmap()
	}
	return at.String()
}

func within(networks []netip.Prefix, at netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(at) })
}

const cookieName = "tidemark_session"

// ticket is what a session's cookie says.
type ticket struct {
	Name  string `json:"n"`
	Role  string `json:"r"`
	Via   string `json:"v"` // user or provider
	Until int64  `json:"u"` // seconds since 1970
	// Mark is of the user's password, or of the provider: a session does not outlive it.
	Mark string `json:"m,omitempty"`
}

// mark tells a user's password from another one.
func (s *SignIn) mark(u User) string {
	return base64.RawURLEncoding.EncodeToString(s.mac("password", u.PasswordHash))
}

// markProvider tells the provider, and this server's client there, from another one.
func (s *SignIn) markProvider() string {
	return base64.RawURLEncoding.EncodeToString(s.mac("provider", s.OIDC.Issuer+"\n"+s.OIDC.ClientID))
}

// sign makes a text that only this server can have made. For tells kinds of texts apart.
func (s *SignIn) sign(kind string, v any) string {
	text, _ := json.Marshal(v) // of structs of ours it never fails
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + base64.RawURLEncoding.EncodeToString(s.mac(kind, body))
}

func (s *SignIn) mac(kind, body string) []byte {
	m := hmac.New(sha256.New, s.Key)
	fmt.Fprintf(m, "%s\n%s", kind, body)
	return m.Sum(nil)
}

// verify reads what sign has made.
func (s *SignIn) verify(kind, text string, v any) bool {
	body, sum, _ := strings.Cut(text, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil || !hmac.Equal(given, s.mac(kind, body)) {
		return false
	}
	plain, err := base64.RawURLEncoding.DecodeString(body)
	return err == nil && json.Unmarshal(plain, v) == nil
}

// session tells whose session a cookie is. A user keeps no role that he has lost, and no session that began with another password, or at
// a provider that is gone.
func (s *SignIn) session(cookie string) (api.Person, error) {
	var t ticket
	if !s.verify("session", cookie, &t) || s.now().Unix() >= t.Until {
		return api.Person{}, errUnknown
	}
	role, err := api.ParseRole(t.Role)
	if err != nil {
		return api.Person{}, errUnknown
	}
	switch user, known := s.Users[t.Name]; {
	case t.Via == "provider" && s.OIDC != nil && t.Mark == s.markProvider():
	case t.Via == "user" && known && t.Mark == s.mark(user):
		role = user.Role
	default:
		return api.Person{}, errUnknown
	}
	return api.Person{Name: t.Name, Role: role}, nil
}

// begin gives the browser a session.
func (s *SignIn) begin(w http.ResponseWriter, r *http.Request, p api.Person, via string) {
	s.note(r, p.Name, "signed in", via)
	t := ticket{Name: p.Name, Role: p.Role.String(), Via: via, Until: s.now().Add(session).Unix()}
	if via == "user" {
		t.Mark = s.mark(s.Users[p.Name])
	} else {
		t.Mark = s.markProvider()
	}
	s.setCookie(w, cookieName, s.sign("session", t), session)
	if via == "user" {
		s.setCookie(w, deviceCookie, s.sign("device", device{p.Name, rand.Text()}), deviceKept)
	}
}

// setCookie sets or, with an empty value, removes a cookie.
func (s *SignIn) setCookie(w http.ResponseWriter, name, value string, age time.Duration) {
	c := &http.Cookie{ //nolint:gosec // Secure goes by console.url: without https browsers would not send it back
		Name: name, Value: value, Path: s.Prefix + "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.URL != nil && s.URL.Scheme == "https", MaxAge: int(age.Seconds()),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
