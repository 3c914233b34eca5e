package signin

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

var pageTemplate = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in · Tidemark</title>
<link rel="stylesheet" href="{{.Prefix}}/static/style.css">
</head>
<body class="sign-in">
<main>
<h1>Tidemark</h1>
{{with .Problem}}<p class="problem" role="alert">{{.}}</p>{{end}}
{{if .Password}}<form method="post" action="{{.Prefix}}/sign-in">
<input type="hidden" name="to" value="{{.To}}">
<label>Name <input name="name" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in</button>
</form>{{end}}
{{if .Provider}}<p><a class="button" href="{{.Prefix}}/sign-in/provider?to={{.To}}">Sign in with the identity provider</a></p>{{end}}
{{if not (or .Password .Provider)}}<p>{{if .Proxy}}Sign in at the proxy in front of this server: a request without its header is not let in.{{else}}Programs sign in with a bearer token. People cannot sign in here: the configuration has no users and no identity provider.{{end}}</p>{{end}}
</main>
</body>
</html>
`))

func (s *SignIn) page(w http.ResponseWriter, r *http.Request) {
	s.show(w, http.StatusOK, "", r.FormValue("to"))
}

// show shows the page, which leads to a path of this server.
func (s *SignIn) show(w http.ResponseWriter, status int, problem, to string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = pageTemplate.Execute(w, map[string]any{ // the client is gone: nothing can receive the error
		"Prefix": s.Prefix, "Problem": problem, "Password": len(s.Users) > 0, "Provider": s.OIDC != nil, "Proxy": s.Proxy != nil,
		"To": s.local(to),
	})
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
		w.Header().Set("Retry-After", "60")
		s.show(w, http.StatusTooManyRequests, "Too many refused sign-ins. Try again in a minute.", r.PostFormValue("to"))
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
