package daemon

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/target"
	"github.com/tidemarkhq/tidemark/sink"
	"github.com/tidemarkhq/tidemark/sink/webhook"
)

func (t *targets) webhook(route store.Route) (sink.Sink, error) {
	var o struct {
		Secret   string                   `json:"secret"`
		Unsigned bool                     `json:"unsigned"`
		Format   string                   `json:"format"`
		Headers  map[string]target.Header `json:"headers"`
	}
	if err := options(route, &o); err != nil {
		return nil, err
	}
	format, err := sink.ParseFormat(o.Format)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.config.Load()
	ports := webhookPorts(c)
	made := webhook.Options{
		URL: route.TargetRef, Unsigned: o.Unsigned, Format: format, Headers: map[string]string{}, Tokens: map[string]*webhook.Tokens{},
		Allow: c.Webhook.Allow, Ports: ports, CAFile: c.Webhook.CAFile, MaxConns: route.Concurrency,
	}
	if o.Secret != "" {
		if made.Secrets, err = signingKeys(c, o.Secret); err != nil {
			return nil, err
		}
	}
	var shares []*shared[*webhook.Tokens]
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		h := o.Headers[name]
		if h.Secret == "" {
			made.Headers[name] = h.Text
		} else if values := c.Secrets[h.Secret]; len(values) > 0 {
			if use := onlyFor(c, h.Secret); use != "" {
				return nil, fmt.Errorf("options: secret %q is %s and cannot be used in a header: give header %s a secret of its own", h.Secret, use, name)
			}
			made.Headers[name] = values[0].Reveal()
		} else if _, known := c.OAuth2[h.Secret]; known {
			tokens, err := t.tokens(c, h.Secret)
			if err != nil {
				return nil, err
			}
			made.Tokens[name] = tokens.connection
			shares = append(shares, tokens)
		} else {
			// The request is never sent without this header.
			return nil, fmt.Errorf("options: there is no secret %q for header %s in the configuration of this daemon (secrets.%s or oauth2.%s)", h.Secret, name, h.Secret, h.Secret)
		}
	}
	opened, err := webhook.New(made)
	if err != nil {
		return nil, err
	}
	s := sink.Sink(opened)
	for _, tokens := range shares {
		s = join(t, tokens, s)
	}
	return s, nil
}

// onlyFor tells what a secret is for that must not leave this host; empty: it may be the value of a header. Who sets routes chooses where
// headers go, and so could read it.
func onlyFor(c *config.Config, name string) string {
	for _, s := range c.Secrets[name] {
		if text := s.Reveal(); strings.HasPrefix(text, "whsec_") || strings.HasPrefix(text, "whsk_") {
			return "a signing key"
		}
	}
	for _, p := range c.Commands.Ingress.Producers {
		if p.Secret == name {
			return "the token of a producer (commands.ingress)"
		}
	}
	return ""
}

func signingKeys(c *config.Config, name string) (keys []string, err error) {
	for _, s := range c.Secrets[name] {
		keys = append(keys, s.Reveal())
	}
	if _, other := c.OAuth2[name]; other && keys == nil {
		return nil, fmt.Errorf("options: secret %q is for headers only (oauth2.%s) and cannot sign", name, name)
	}
	if keys == nil {
		return nil, fmt.Errorf("options: there is no secret %q in the configuration of this daemon (secrets.%s)", name, name)
	}
	return keys, nil
}

func webhookPorts(c *config.Config) []uint16 {
	ports := make([]uint16, 0, len(c.Webhook.Ports))
	for _, p := range c.Webhook.Ports {
		ports = append(ports, uint16(p)) //nolint:gosec // the configuration's range is that of ports
	}
	return ports
}

// tokens returns the tokens of the named client credentials, which all routes share. The caller holds mu.
func (t *targets) tokens(c *config.Config, name string) (*shared[*webhook.Tokens], error) {
	if t.oauth[name] == nil {
		o := c.OAuth2[name]
		tokens, err := webhook.NewTokens(webhook.TokenOptions{
			URL: o.TokenURL, ClientID: o.ClientID, ClientSecret: o.ClientSecret.Reveal(), Scopes: o.Scopes, Audience: o.Audience,
			Post: o.ClientAuth == "post", Allow: c.Webhook.Allow, Ports: webhookPorts(c), CAFile: c.Webhook.CAFile,
		})
		if err != nil {
			return nil, fmt.Errorf("oauth2.%s: %w", name, err)
		}
		t.oauth[name] = &shared[*webhook.Tokens]{connection: tokens}
	}
	return t.oauth[name], nil
}
