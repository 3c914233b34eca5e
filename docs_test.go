package tidemark_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	testName     = regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)\\w*)`")
	scriptNames  = regexp.MustCompile("\\bscripts? ((?:`[a-z_]+`(?:, | and )?)+)")
	quoted       = regexp.MustCompile("`(\\w+)`")
	makeTarget   = regexp.MustCompile("`make ([a-z-]+)")
	linkTarget   = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	fileName     = regexp.MustCompile("`((?:sink|sql|internal|scripts|test|cmd|packs|examples)/[\\w/.-]+\\.\\w+)`")
)

// Each test, script, target of make and file that the docs name is there under that name.
func TestDocsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	there := map[string]bool{"TestSink": true} // tidemarktest's, for the tests of others
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunction.FindAllSubmatch(text, -1) {
			there[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	exists := func(path ...string) bool {
		_, err := os.Stat(filepath.Join(path...))
		return err == nil
	}

	pages := docs(t)
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		missing := func(ok bool, what string) {
			if n++; !ok {
				t.Errorf("%s names %s, which is not there", page, what)
			}
		}
		for _, name := range testName.FindAllStringSubmatch(string(text), -1) {
			missing(there[name[1]], name[1])
		}
		for _, names := range scriptNames.FindAllStringSubmatch(string(text), -1) {
			for _, name := range quoted.FindAllStringSubmatch(names[1], -1) {
				missing(exists("cmd/tidemark/testdata", name[1]+".txtar"), "script "+name[1])
			}
		}
		for _, name := range makeTarget.FindAllStringSubmatch(string(text), -1) {
			missing(slices.ContainsFunc(strings.Split(string(makefile), "\n"), func(line string) bool { return strings.HasPrefix(line, name[1]+":") }), "make "+name[1])
		}
		for _, name := range linkTarget.FindAllStringSubmatch(string(text), -1) {
			missing(exists(filepath.Dir(page), name[1]), name[1])
		}
		for _, name := range fileName.FindAllStringSubmatch(string(text), -1) {
			missing(exists(name[1]), name[1])
		}
		if page == "docs/requirements.md" && n < 400 {
			t.Errorf("%d names are found in %s", n, page)
		}
	}
}

// Each id of the requirements has one row.
func TestRequirementsStandOnce(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, seen := strings.Split(string(text), "\n"), map[string]bool{}
	for i, line := range lines {
		cells := strings.SplitN(line, "|", 3)
		if len(cells) < 3 || strings.HasPrefix(line, "|---") || strings.HasPrefix(lines[i+1], "|---") {
			continue
		}
		if id := strings.TrimSpace(cells[1]); seen[id] {
			t.Errorf("docs/requirements.md: the row %s stands twice", id)
		} else {
			seen[id] = true
		}
	}
	if len(seen) < 150 {
		t.Errorf("%d rows are found", len(seen))
	}
}

// The page on the command line has each key of the daemon's configuration.
func TestDocsNameEachKey(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("internal/config/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct{ Properties map[string]any }
	}
	if err := json.Unmarshal(text, &schema); err != nil || len(schema.Properties) < 10 {
		t.Fatal(len(schema.Properties), err)
	}
	page, err := os.ReadFile("docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := []string{"commands", "console"} // pages of their own
	for key, of := range schema.Properties {
		if len(of.Properties) == 0 || slices.Contains(elsewhere, key) {
			of.Properties = map[string]any{"": nil}
		}
		for below := range of.Properties {
			if name := strings.TrimSuffix(key+"."+below, "."); !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/cli.md does not name %s", name)
			}
		}
	}
}

var (
	pageLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)
	figure   = regexp.MustCompile(`(?:^|[^\w.,-])(\d[\d,]*(?:\.\d+)?)\b`)
)

// A figure beside a link to docs/performance.md is one of that page: in the cell of the link, or, where the cell has nothing but links, in
// its row.
func TestDocsHaveTheFiguresOfPerformance(t *testing.T) {
	t.Parallel()
	figures := func(text string) (all []string) {
		for _, m := range figure.FindAllStringSubmatch(pageLink.ReplaceAllString(text, "$1"), -1) {
			all = append(all, strings.TrimSuffix(m[1], ","))
		}
		return all
	}
	text, err := os.ReadFile("docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	measured, n := figures(string(text)), 0
	for _, page := range append(docs(t), "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			for _, cell := range cells {
				if !strings.Contains(cell, "performance.md#expected-performance") {
					continue
				}
				scope := cell
				if strings.Trim(pageLink.ReplaceAllString(cell, ""), " ,") == "" && len(cells) > 3 {
					scope = strings.Join(cells[2:], "|") // the first cell names the row
				}
				for _, got := range figures(scope) {
					if n++; !slices.Contains(measured, got) {
						t.Errorf("%s: %s is not in docs/performance.md: %s", page, got, strings.TrimSpace(scope))
					}
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d figures are found", n)
	}
}

// docs are the pages below docs.
func docs(t *testing.T) (pages []string) {
	t.Helper()
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) == 0 {
		t.Fatal("no docs", err)
	}
	return pages
}

var walked = regexp.MustCompile("`([\\w/.-]+\\.(?:go|sql))` ((?:`\\w+`(?:, )?)+)")

// The walks of docs/architecture.md name functions that are in the files beside which they stand.
func TestWalks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	walks := walked.FindAllStringSubmatch(string(page), -1)
	if len(walks) < 40 {
		t.Fatalf("%d steps", len(walks))
	}
	for _, step := range walks {
		text, err := os.ReadFile(step[1])
		if err != nil {
			t.Error(err)
		}
		for _, name := range quoted.FindAllStringSubmatch(step[2], -1) {
			if !regexp.MustCompile(`(?m)^(?:func (?:\(.*\) )?|create or replace (?:function|view) tidemark\.)` + name[1] + `\b`).Match(text) {
				t.Errorf("%s has no %s", step[1], name[1])
			}
		}
	}
}

// A receiver of webhooks answers no error with success: the daemon would not send the event again.
func TestClientsAnswerErrorsWithoutSuccess(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/clients/*.md")
	if err != nil || len(pages) < 6 {
		t.Fatal(pages, err)
	}
	caught := regexp.MustCompile(`\b(?:rescue|catch|except)\b`)
	success := regexp.MustCompile(`\b20[0-9]\b|(?i)no_?content|:ok\b`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		lines, n := strings.Split(string(text), "\n"), 0
		for i, line := range lines {
			if strings.Contains(line, "`") || !caught.MatchString(line) {
				continue
			}
			n++
			// The branch: what stands deeper than it, or than the line with its brace.
			indent := len(line) - len(strings.TrimLeft(line, " "))
			for _, below := range lines[i+1:] {
				if strings.TrimSpace(below) != "{" && len(below)-len(strings.TrimLeft(below, " ")) <= indent {
					break
				}
				if success.MatchString(below) {
					t.Errorf("%s: the branch of %q answers with success: %q", page, line, below)
				}
			}
		}
		if n == 0 && strings.Contains(string(text), "## Receiving webhooks") {
			t.Errorf("%s: no branch for an error is found", page)
		}
	}
}
