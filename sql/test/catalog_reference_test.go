package test

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const referencePage = "../../docs/sql.md"

// subjects are the folders of code/ as docs/sql.md has them.
var subjects = []struct{ folder, title string }{
	{"log", "The log"},
	{"registry", "Domains and event types"},
	{"route", "Routes"},
	{"gate", "Gates and the stage"},
	{"worker", "Workers"},
	{"evidence", "Evidence, dead letters and replays"},
	{"source", "Tables as sources"},
	{"source/doctor", "The doctor of sources"},
	{"capture", "Capture"},
	{"command", "Commands"},
	{"liveness", "Heartbeats, findings and health"},
	{"cause", "Causes of trouble"},
	{"watch", "The watch"},
	{"configuration", "Configuration as code"},
}

// docs/sql.md is made of the comments of what is marked "-- public": go test ./sql/test -run TestReference -update.
func TestReference(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "reference")
	var page strings.Builder
	page.WriteString("# SQL reference\n\nThe functions and views that operators and applications call, made from the comments in `sql/code/`. What is not named here is for\n" +
		"workers and for Tidemark itself, and changes without notice. Roles: [roles.md](roles.md). Errors: [errors.md](errors.md).\n")
	public := map[string][]string{}
	for _, file := range codeFiles(t) {
		if strings.HasPrefix(file.Text, "-- public\n") {
			folder := strings.TrimPrefix(path.Dir(file.Path), "code/")
			public[folder] = append(public[folder], file.Name())
		}
	}
	for _, subject := range subjects {
		fmt.Fprintf(&page, "\n## %s\n", subject.title)
		for _, name := range public[subject.folder] {
			page.WriteString(one[string](s, describe, name))
		}
		delete(public, subject.folder)
	}
	equal(t, "folders without a title", len(public), 0)
	if *update {
		if err := os.WriteFile(referencePage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(referencePage)
	if err != nil || string(old) != page.String() {
		t.Errorf("%s is not what the comments say (%v): go test ./sql/test -run TestReference -update\n%s", referencePage, err, cmp.Diff(string(old), page.String()))
	}
}

// describe is the part of the page about one function or view, without the note of what it was in the source documents.
const describe = `
select format(E'\n### %s\n\n%s%s\n\n%s\n', d.name, d.head, coalesce(' For ' || d.roles || '.', ''), replace(regexp_replace(d.comment, ' Source: S\d [^.]*\.$', ''), '|', '\|'))
from (
    select p.proname as name, obj_description(p.oid, 'pg_proc') as comment,
           format('` + "`" + `%s(%s) → %s` + "`" + `.', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)) as head,
           (select string_agg(format('` + "`%s`" + `', r.rolname), ', ' order by r.rolname)
            from aclexplode(p.proacl) a join pg_roles r on r.oid = a.grantee where r.oid <> p.proowner) as roles
    from pg_proc p where p.pronamespace = 'tidemark'::regnamespace
    union all
    select c.relname, obj_description(c.oid, 'pg_class'),
           format('A view: %s.', (select string_agg(format('` + "`%s`" + `', a.attname), ', ' order by a.attnum)
                                  from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)),
           (select string_agg(distinct format('` + "`%s`" + `', r.rolname), ', ')
            from aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee where r.oid <> c.relowner)
    from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'v') d
where d.name = $1`
