package signin

import (
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/api"
)

var pageTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{if .Refused}}Refused{{else}}Sign in{{end}} · Tidemark</title>
<link rel="stylesheet" href="{{.Prefix}}/static/style.css">
</head>
<body class="sign-in">
<main>
<h1>Tidemark</h1>
{{with .Problem}}<div class="problem" role="alert"><p><strong>{{.}}</strong></p>{{with $.Hint}}<p>{{.}}</p>{{end}}</div>{{end}}
{{if .Refused}}{{with .Link}}<p><a href="{{.}}">To the overview</a></p>{{end}}{{else}}
{{if .Password}}<form method="post" action="{{.Prefix}}/sign-in">
<input type="hidden" name="to" value="{{.To}}">
<label>Name <input name="name" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button>
</form>{{end}}
{{if .Provider}}<p><a class="button" href="{{.Prefix}}/sign-in/provider?to={{.To}}">Sign in with the identity provider</a></p>{{end}}
{{if not (or .Password .Provider)}}<p>{{if .Proxy}}Sign in at the proxy in front of this server: a request without its header is not let in.{{else}}Programs sign in with a bearer token. People cannot sign in here: the configuration has no users and no identity provider.{{end}}</p>{{end}}{{end}}
</main>
</body>
</html>
`))

func (s *SignIn) page(w http.ResponseWriter, r *http.Request) {
	s.show(w, http.StatusOK, "", r.FormValue("to"))
}

// show shows the page, which leads to a path of this server.
func (s *SignIn) show(w http.ResponseWriter, status int, problem, to string) {
	s.write(w, status, map[string]any{
		"Problem": problem, "Password": len(s.Users) > 0, "Provider": s.OIDC != nil, "Proxy": s.Proxy != nil, "To": s.local(to),
	})
}

func (s *SignIn) write(w http.ResponseWriter, status int, shown map[string]any) {
	shown["Prefix"] = s.Prefix
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, shown) // the client is gone: nothing can receive the error
}

// refuse tells a program what is wrong by a problem, and a person by a page, which leads to link.
func (s *SignIn) refuse(w http.ResponseWriter, r *http.Request, p *api.Problem, link string) {
	closeUnread(w, r)
	if s.isAPI(r) {
		api.Refuse(w, p)
		return
	}
	s.write(w, p.Status, map[string]any{"Refused": true, "Problem": p.Detail, "Hint": p.Hint, "Link": link})
}

// closeUnread ends the connection with the answer: else the server reads the body of the request before it answers.
func closeUnread(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Connection", "close")
	}
}

// otherSite refuses a request that a page of another site makes.
func (s *SignIn) otherSite(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, api.OtherSite(s.isAPI(r)), s.Prefix+"/")
}

// unknownHost refuses a request by a name of this server that it does not know.
func (s *SignIn) unknownHost(w http.ResponseWriter, r *http.Request) {
	hint, link := "Set console.url to the address at which browsers reach it. On the host itself, use localhost.", ""
	if s.URL != nil {
		link = strings.TrimSuffix(s.URL.String(), "/") + "/"
		hint = "Use " + link + ", or set console.url to the address at which browsers reach it."
	}
	s.refuse(w, r, refusal(http.StatusForbidden, "this server is not known as "+r.Host[:min(len(r.Host), 256)], hint), link)
}

// tooMany refuses a sign-in after too many refused ones, and says when to try again. A person gets the form.
func (s *SignIn) tooMany(w http.ResponseWriter, r *http.Request, to string) {
	seconds := max(1, int(math.Ceil(s.tries.over().Sub(s.now()).Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	closeUnread(w, r)
	again := fmt.Sprintf("Try again in %d s.", seconds)
	if s.isAPI(r) {
		api.Refuse(w, refusal(http.StatusTooManyRequests, errTooMany.Error(), again))
		return
	}
	s.show(w, http.StatusTooManyRequests, "Too many refused sign-ins. "+again, to)
}

func refusal(status int, detail, hint string) *api.Problem {
	return &api.Problem{Status: status, Title: http.StatusText(status), Detail: detail, Hint: hint}
}

// password signs in with a name and a password.
func (s *SignIn) password(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	name := r.PostFormValue("name")
	person, err := s.check(r, name, r.PostFormValue("password"))
	switch {
	case err == nil:
		s.begin(w, r, person, "user")
		http.Redirect(w, r, s.local(r.PostFormValue("to")), http.StatusSeeOther) //nolint:gosec // local leads nowhere else
	case errors.Is(err, errTooMany):
		s.tooMany(w, r, r.PostFormValue("to"))
	default:
		s.show(w, http.StatusUnauthorized, "The name or the password is wrong.", r.PostFormValue("to"))
	}
}

func (s *SignIn) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		if person, err := s.session(cookie.Value); err == nil {
			s.note(r, person.Name, "signed out", "by the person")
		}
	}
	s.setCookie(w, cookieName, "", 0)
	http.Redirect(w, r, s.Prefix+"/sign-in", http.StatusSeeOther)
}

// local is a path of this server, from what a request says: never another site.
func (s *SignIn) local(to string) string {
	at, err := url.Parse(to)
	if err != nil || at.Scheme != "" || at.Host != "" || at.User != nil || at.Opaque != "" || strings.ContainsAny(to, "\\\r\n\t") ||
		!strings.HasPrefix(at.Path, s.Prefix+"/") || strings.HasPrefix(at.Path, "//") || strings.HasPrefix(at.Path, s.Prefix+"/sign-") {
		return s.Prefix + "/"
	}
	return at.RequestURI()
}
