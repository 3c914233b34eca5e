package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/tidemarkhq/tidemark/internal/api"
)

// OIDC is an OpenID Connect provider.
type OIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret string
	Scopes       []string            // beside openid, profile and email
	Name         string              // the claim that names a person; empty: the verified e-mail address, else sub and the issuer's host
	Claim        string              // that has a person's groups, a text or a list; empty: groups
	Roles        map[string]api.Role // by group
	Role         api.Role            // of those without such a group; 0: they are refused
	Client       *http.Client        // for requests to the provider; it has a time limit
}

// provider is an OIDC that was asked for its configuration.
type provider struct {
	*oidc.Provider
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// discovery is a question for the provider's configuration.
type discovery struct {
	ended chan struct{} // closed once the rest is there
	found *provider
	err   error
	until time.Time // when a failure is forgotten
}

// failureKept is how long a provider that gave no configuration is not asked again.
const failureKept = 10 * time.Second

// discover asks the provider for its configuration, once: at the first sign-in, so that the console starts without it. All that come
// meanwhile wait for the same answer, and no longer than their browsers: a provider that hangs must not hold a connection for each.
func (s *SignIn) discover(ctx context.Context) (*provider, error) {
	s.discovering.Lock()
	d := s.discovery
	if d == nil || d.failed(s.now()) {
		d = &discovery{ended: make(chan struct{})}
		s.discovery = d
		go s.askProvider(context.WithoutCancel(ctx), d)
	}
	s.discovering.Unlock()
	select {
	case <-d.ended:
		return d.found, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// failed reports that the question failed some time ago.
func (d *discovery) failed(now time.Time) bool {
	select {
	case <-d.ended:
		return d.err != nil && !now.Before(d.until)
	default:
		return false
	}
}

func (s *SignIn) askProvider(ctx context.Context, d *discovery) {
	defer close(d.ended)
	// The provider keeps its context, for fetching keys later on; the client has a time limit.
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, s.OIDC.Client), s.OIDC.Issuer)
	if err != nil {
		d.err, d.until = err, s.now().Add(failureKept)
		return
	}
	d.found = &provider{
		Provider: found,
		oauth: oauth2.Config{
			ClientID: s.OIDC.ClientID, ClientSecret: s.OIDC.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: s.callback(),
			Scopes: append([]string{oidc.ScopeOpenID, "profile", "email"}, s.OIDC.Scopes...),
		},
		verifier: found.Verifier(&oidc.Config{ClientID: s.OIDC.ClientID}),
	}
}

// attempt is a sign-in that is under way at the provider, in a signed cookie of the browser.
type attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // PKCE
	To       string `json:"t"`
	Until    int64  `json:"u"`
}

const (
	attemptCookie = "tidemark_attempt"
	attemptLimit  = 10 * time.Minute
)

func (s *SignIn) callback() string {
	base := *s.URL
	base.Path = s.Prefix + "/sign-in/callback"
	return base.String()
}

// toProvider sends the browser to the provider.
func (s *SignIn) toProvider(w http.ResponseWriter, r *http.Request) {
	a := attempt{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: s.local(r.FormValue("to")),
		Until: s.now().Add(attemptLimit).Unix(),
	}
	p, err := s.discover(r.Context())
	if err != nil {
		s.Log.WarnContext(r.Context(), "cannot reach the OpenID Connect provider", "error", err)
		s.show(w, http.StatusBadGateway, "The identity provider cannot be reached. Try again later; the log of this server says more.", r.FormValue("to"))
		return
	}
	s.setCookie(w, attemptCookie, s.sign("attempt", a), attemptLimit)
	http.Redirect(w, r, p.oauth.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), http.StatusSeeOther)
}

// fromProvider ends a sign-in at the provider.
func (s *SignIn) fromProvider(w http.ResponseWriter, r *http.Request) {
	person, to, err := s.accept(r)
	s.setCookie(w, attemptCookie, "", 0)
	if err != nil {
		// Anyone can come here as often as he likes, which must not flood the audit; nor may it keep others from signing in.
		if from := (counter{ofProvider, s.network(r)}); s.tries.allowed(s.now(), from) {
			s.tries.failed(from)
			s.note(r, person.Name, "refused", err.Error())
		}
		s.show(w, http.StatusForbidden, err.Error(), r.FormValue("to"))
		return
	}
	s.begin(w, r, person, "provider")
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // it was local when it was signed
}

// accept checks what the provider's redirect says.
func (s *SignIn) accept(r *http.Request) (p api.Person, to string, err error) {
	var a attempt
	cookie, err := r.Cookie(attemptCookie)
	if err != nil || !s.verify("attempt", cookie.Value, &a) || s.now().Unix() >= a.Until ||
		subtle.ConstantTimeCompare([]byte(a.State), []byte(r.FormValue("state"))) != 1 {
		return p, "", errors.New("this sign-in was not begun here, or took too long: try again")
	}
	if refusal := r.FormValue("error"); refusal != "" {
		return p, "", fmt.Errorf("the provider refused: %.200s", refusal)
	}
	ctx := oidc.ClientContext(r.Context(), s.OIDC.Client)
	found, err := s.discover(ctx)
	if err != nil {
		return p, "", errors.New("the identity provider cannot be reached: try again later")
	}
	token, err := found.oauth.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		s.Log.WarnContext(r.Context(), "the OpenID Connect provider gives no token", "error", err)
		return p, "", errors.New("the provider gives no token for this sign-in: try again")
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := found.verifier.Verify(ctx, raw)
	if err != nil || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1 {
		s.Log.WarnContext(r.Context(), "the token of the OpenID Connect provider is not valid", "error", err)
		return p, "", errors.New("the token of the provider is not valid")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return p, "", errors.New("the token of the provider cannot be read")
	}
	// Many providers tell names and groups there alone.
	if found.UserInfoEndpoint() != "" {
		info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil || info.Subject != id.Subject || info.Claims(&claims) != nil {
			s.Log.WarnContext(r.Context(), "the OpenID Connect provider tells nothing of a person", "error", err)
			return p, "", errors.New("the identity provider tells nothing of you: try again")
		}
	}
	p, err = s.OIDC.person(id.Subject, claims)
	if err != nil {
		return p, "", err
	}
	if p.Role < api.Viewer {
		return p, "", fmt.Errorf("%s has no role here: ask an administrator of the console", p.Name)
	}
	return p, a.To, nil
}

// person is who the claims describe.
func (o OIDC) person(subject string, claims map[string]any) (api.Person, error) {
	name, err := o.name(subject, claims)
	if err != nil {
		return api.Person{}, err
	}
	p := api.Person{Name: name, Role: o.Role}
	claim := o.Claim
	if claim == "" {
		claim = "groups"
	}
	groups, _ := claims[claim].([]any)
	if one, ok := claims[claim].(string); ok {
		groups = []any{one}
	}
	for _, group := range groups {
		if name, ok := group.(string); ok {
			p.Role = max(p.Role, o.Roles[name])
		}
	}
	return p, nil
}

// name is what the audit calls a person. Providers let people choose preferred_username, and the addresses that they have not verified:
// one could take another's.
func (o OIDC) name(subject string, claims map[string]any) (string, error) {
	address, _ := claims["email"].(string)
	if verified, _ := claims["email_verified"].(bool); !verified {
		address = ""
	}
	switch o.Name {
	case "":
		if address != "" {
			return address, nil
		}
		issuer, err := url.Parse(o.Issuer)
		if err != nil {
			return "", errors.New("the address of the provider cannot be read")
		}
		return subject + " at " + issuer.Host, nil
	case "email":
		if address == "" {
			return "", errors.New("the provider has not verified your e-mail address, which names you here")
		}
		return address, nil
	}
	name, _ := claims[o.Name].(string)
	if name == "" {
		return "", fmt.Errorf("the provider does not tell %q of you, which names you here: ask an administrator of the console", o.Name)
	}
	return name, nil
}
