package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/testserver"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// everywhere asks for each page, and for the page of each act, and does an act. None of them may do anything.
func (s *site) everywhere(role string, check func(what string, act bool, status int, page string)) {
	s.t.Helper()
	for name, path := range s.pages {
		if name != "not-found" {
			status, page := s.get(role, path)
			check(path, false, status, page)
		}
	}
	for name := range acts {
		status, page := s.get(role, "/act/"+name+"?"+anyParameters.Encode())
		check("the page of "+name, true, status, page)
	}
	for name := range acts {
		form := url.Values{"reason": {"test"}, "typed": {acts[name].typed}}
		for name, v := range anyParameters {
			form[name] = v
		}
		if acts[name].danger != "" {
			form.Set("typed", anyParameters.Get(acts[name].danger))
		}
		status, page := s.request(role, "POST", "/act/"+name, form)
		check(name, true, status, page)
	}
}

// audited returns a check that the audit has no entry more than now.
func (s *site) audited() (wantNoEntry func()) {
	s.t.Helper()
	const entries = `select count(*) from tidemark.audit`
	before := value[int](s, entries)
	return func() {
		s.t.Helper()
		if after := value[int](s, entries); after != before {
			s.t.Errorf("%d entries of the audit", after-before)
		}
	}
}

// anyParameters are parameters that fit any act.
var anyParameters = url.Values{
	"gate": {"routes.enabled"}, "route": {"hook"}, "id": {"1"}, "ids": {"1"}, "worker": {"default"}, "source": {"births"}, "table": {"public.births"}, "domain": {"shop"},
	"type": {"order"}, "service": {"none"}, "command": {"none"}, "version": {"1"}, "kid": {"none"}, "executor": {"job"}, "pack": {"iu-core"}, "cadence": {"60"},
	"to_seq": {"2"}, "from_seq": {"1"}, "columns": {"{}"}, "setting": {"emit.payload_limit"}, "value": {"1"}, "key": {"none"},
	"item": {"1"}, "until": {time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04")}, "role": {"postgres"}, "producer": {"none"}, "public_key": {"{}"}, "subject": {"none"}, "topic": {"none"}, "partition": {"0"}, "next": {"0"},
}

// A browser without a session, or whose session is over, sees nothing and does nothing.
func TestStrangersGetNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.pages = s.pagesOf()
	wantNoEntry := s.audited()
	s.everywhere("stranger", func(what string, _ bool, status int, page string) {
		if status != http.StatusUnauthorized || strings.TrimSpace(page) != "sign in first" {
			t.Errorf("%s: %d %s", what, status, page)
		}
	})
	wantNoEntry()
}

// A read-only console shows everything, offers no act and does none.
func TestReadOnlyConsole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.pages = s.pagesOf()
	delete(s.pages, "act")
	s.serve(s.pool, true)
	wantNoEntry := s.audited()
	s.everywhere("", func(what string, act bool, status int, page string) {
		switch {
		case act && (status != http.StatusForbidden || !strings.Contains(page, "this console is read-only") || !strings.Contains(page, "Use the command line")):
			t.Errorf("%s: %d %s", what, status, page)
		case !act && (status != http.StatusOK || strings.Contains(page, `href="/act/`)):
			t.Errorf("%s: %d %s", what, status, page)
		}
	})
	wantNoEntry()
}

// Without a database each page says so, what to do, and what was last known.
func TestEveryPageWithoutADatabase(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.populate()
	s.pages = s.pagesOf()
	delete(s.pages, "act")
	s.get("", "/")
	s.pool.Close()
	s.request("", "POST", "/act/maintain", url.Values{"reason": {"pages forget what others have asked"}})
	s.everywhere("", func(what string, act bool, status int, page string) {
		says := status == http.StatusServiceUnavailable && strings.Contains(page, "the database cannot be reached")
		switch {
		case !strings.Contains(page, "</html>") || !strings.Contains(page, `data-status="unknown"`):
			t.Errorf("%s: %d %s", what, status, page)
		case act && strings.HasPrefix(what, "the page of"): // its form needs no database
		case !says:
			t.Errorf("%s: %d %s", what, status, page)
		case !act && (!strings.Contains(page, "What is below was read") || !strings.Contains(page, "it is full")):
			t.Errorf("%s does not show what was last known: %s", what, page)
		}
	})
}

// A standby shows everything, and says where acts can be done.
func TestEveryPageOfAStandby(t *testing.T) {
	t.Parallel()
	primary := testserver.New(t, devpg.Options{})
	s := &site{t: t, db: tidemarktest.NewDBAt(t, primary.URL("postgres"))}
	s.pool = s.db.Pool
	s.populate()
	s.pages = s.pagesOf()
	standby := testserver.Standby(t, primary, "second", nil)
	pool, err := pgxpool.New(t.Context(), standby.URL(s.db.Name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s.serve(pool, false)
	if _, page := s.get("", "/"); !strings.Contains(page, "a standby: workers cannot run here") {
		t.Errorf("the overview: %s", page)
	}
	done := 0
	s.everywhere("", func(what string, act bool, status int, page string) {
		switch {
		case !act && (status != http.StatusOK || !strings.Contains(page, "</html>")):
			t.Errorf("%s: %d %s", what, status, page)
		case act && status == http.StatusServiceUnavailable && !strings.Contains(page, "primary"):
			t.Errorf("%s does not say where it can be done: %s", what, page)
		case act && status == http.StatusServiceUnavailable:
			done++
		case act && (status >= 500 || !strings.Contains(page, "</html>")):
			t.Errorf("%s: %d %s", what, status, page)
		}
	})
	if done < 20 {
		t.Errorf("%d acts say that they are for the primary", done)
	}
}

// A schema that no longer fits, since it was brought up or restored while the console runs, is reported by each page that lacks something.
func TestSchemaThatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, says string }{
		"older": {`delete from tidemark.migration where version > 60`, "tidemark migrate up"},
		"newer": {`insert into tidemark.migration (version, name, checksum, breaking) values (999, 'of_the_future', '', true)`, "0999_of_the_future needs a newer version"},
		"none":  {`alter schema tidemark rename to gone`, "nothing is installed; run: tidemark migrate up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.exec(`set session_replication_role = replica; ` + c.change)
			if name != "none" {
				s.exec(`alter view tidemark.cause rename to gone; alter table tidemark.outbound_route rename to gone_too; alter function tidemark.gate_set rename to gone`)
			}
			for _, path := range []string{"/", "/routes", "/act/route-disable?route=hook", "/act/route-edit?route=hook"} {
				status, page := s.get("", path)
				if strings.Contains(path, "disable") {
					status, page = s.request("", "POST", "/act/gate-close", url.Values{"gate": {"routes.enabled"}, "typed": {"routes.enabled"}, "reason": {"x"}})
				}
				if status != http.StatusServiceUnavailable && !strings.Contains(path, "act") || !strings.Contains(page, c.says) || !strings.Contains(page, "UPGRADING") {
					t.Errorf("%s: %d %s", path, status, page)
				}
			}
		})
	}
}
