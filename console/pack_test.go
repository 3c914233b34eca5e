package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A pack is installed from the settings, by an admin whose console may; else the page says what the console lacks.
func TestPackIsInstalled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, page := s.get("", "/settings")
	if !strings.Contains(page, `href="/act/pack-install?pack=governance"`) {
		t.Error("the settings do not offer the pack")
	}
	if _, page := s.get("operator", "/settings"); strings.Contains(page, "pack-install") {
		t.Error("an operator is offered the pack")
	}
	if _, page := s.get("", "/act/pack-install?pack=governance"); !strings.Contains(page, "not installed") {
		t.Errorf("the page of the act does not show the pack:\n%s", page)
	}
	form := url.Values{"pack": {"governance"}, "reason": {"we need it"}, "typed": {"governance"}}
	if status, page := s.request("", "POST", "/act/pack-install", form); status != http.StatusForbidden || !strings.Contains(page, "grant create on database") {
		t.Errorf("without the right: %d %s", status, page)
	}
	login := pgx.Identifier{s.db.Name + "_console"}.Sanitize()
	s.exec(`grant create on database ` + pgx.Identifier{s.db.Name}.Sanitize() + ` to ` + login + `; grant tidemark_owner to ` + login)
	if status, page := s.request("", "POST", "/act/pack-install", form); status != http.StatusOK || !strings.Contains(page, "Next") {
		t.Errorf("%d %s", status, page)
	}
	if !value[bool](s, `select exists (select from tidemark.pack where pack = 'governance')
		and exists (select from tidemark.audit where person = 'ada' and reason = 'we need it' and object = 'pack governance')`) {
		t.Error("it is not installed, or not in the audit")
	}
	if _, page := s.get("", "/settings"); strings.Contains(page, `/act/pack-install?pack=governance"`) {
		t.Error("an installed pack is offered")
	}
	if status, page := s.get("", "/act/pack-install?pack=nope"); !strings.Contains(page, "there is no pack") {
		t.Errorf("%d %s", status, page)
	}
}
