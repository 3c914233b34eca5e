package console

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/api"
)

// act is something that a person can do. Every act has a page of its own, which says what will happen and asks for the reason,
// and does it when its form is sent.
type act struct {
	title  string // with {parameter}
	button string
	role   Role
	danger string // the parameter whose value must be typed; empty: none
	typed  string // what must be typed, where it is no parameter
	warn   string // what it means
	fields []field

	method, path string // of the API, with {parameter}
	body         func(v url.Values) map[string]any
	dryRun       bool     // the API tells what would happen for the same body with dry_run
	preview      string   // a resource of the API that shows what is at stake, if the link says which
	part         string   // the member of it that is shown; empty: all
	leaves       []string // what is not shown of it
	shows        string   // the heading of what is shown; empty: what it would do, or what is there now
	back         string   // the page to go to afterwards; empty: the result is shown
	done         string   // what that page says, of dones; empty: that it is done
	again        bool     // the answer may have a next: the act goes on from there
}

// field is asked for beside the reason.
type field struct {
	Name, Label, Kind, Value, Help string
	Choices                        []string
	Required                       bool
	How                            bool // says how and not what: a preview needs no value
}

// dones says what an act has done, on the page that follows it.
var dones = map[string]string{"": "", "1": "Done.", "job": "The job is made. Its progress is below.", "verify": "It runs in the background. What it finds will be below.", "same": "Nothing was changed: it was so already."}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// fill puts parameters into a text; escape is for paths. Only of ids there may be several.
func fill(text string, v url.Values, escape func(string) string) string {
	return parameter.ReplaceAllStringFunc(text, func(p string) string {
		if name := p[1 : len(p)-1]; name != "ids" {
			return escape(v.Get(name))
		}
		return escape(strings.Join(v["ids"], ", "))
	})
}

// fills tells whether there is a value for each parameter of a text.
func fills(text string, v url.Values) bool {
	return !slices.ContainsFunc(parameter.FindAllStringSubmatch(text, -1), func(p []string) bool { return v.Get(p[1]) == "" })
}

func plain(s string) string { return s }

// asked is the page of an act.
type asked struct {
	Act     string
	Title   string
	Button  string
	Warn    string
	Values  url.Values
	Given   []string // parameters of the link, in the form as hidden ones
	Fields  []field
	Danger  string // what has to be typed
	Shows   string // heading of Preview
	Seen    bool   // Preview was read
	Preview any
	Problem *api.Problem
	Result  any
	Reason  string
	Next    string // where the act goes on
	Back    string
	Dry     bool   // the form shows first what it would do
	Once    string // the Idempotency-Key: a form that is sent twice is done once
}

// numbers are parameters of links that are numbers.
var numbers = []string{"id", "ids", "after", "version", "partition"}

// unfit is why a form cannot be sent: a parameter that is missing, or a number that cannot be read, must not become 0 or all.
func unfit(a act, v url.Values) *api.Problem {
	var why string
	for _, name := range parameter.FindAllStringSubmatch(a.title+a.path, -1) {
		if v.Get(name[1]) == "" {
			why = name[1] + " is missing"
		}
	}
	whole := numbers
	for _, f := range a.fields {
		if f.Required && v.Get(f.Name) == "" {
			why = f.Label + ": this is needed"
		}
		if f.Kind == "number" {
			whole = append(slices.Clip(whole), f.Name)
		}
	}
	for _, name := range whole {
		if slices.ContainsFunc(v[name], func(text string) bool { return text != "" && !natural(text) }) {
			why = label(name) + ": this is no whole number"
			for _, f := range a.fields {
				if f.Name == name {
					why = f.Label + ": this is no whole number"
				}
			}
		}
	}
	if why == "" {
		return nil
	}
	return &api.Problem{Status: http.StatusUnprocessableEntity, Title: "Not done", Detail: "nothing was done: " + why}
}

func natural(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= 0
}

// ask shows what an act would do, and asks for the reason.
func (c *console) ask(w http.ResponseWriter, r *http.Request) {
	a, known := acts[r.PathValue("act")]
	if !known {
		c.problem(w, r, &api.Problem{Status: http.StatusNotFound, Title: "Not found", Detail: "unknown act " + r.PathValue("act")})
		return
	}
	c.showAct(w, r, http.StatusOK, a, r.URL.Query(), nil)
}

// may is why the person may not do it.
func (c *console) may(r *http.Request, a act) *api.Problem {
	person, _ := api.PersonOf(r.Context())
	switch {
	case c.ReadOnly:
		return &api.Problem{Status: http.StatusForbidden, Title: "Read-only", Detail: "this console is read-only", Hint: "Use the command line, or a console that is not."}
	case person.Role < a.role:
		return &api.Problem{
			Status: http.StatusForbidden, Title: "Not allowed", Detail: "this needs the role " + a.role.String() + "; yours is " + person.Role.String(),
			Hint: "Ask someone who has it, or who gives roles in the console's configuration.",
		}
	}
	return nil
}

// showAct shows the page of an act, with what went wrong if it was tried.
func (c *console) showAct(w http.ResponseWriter, r *http.Request, status int, a act, v url.Values, tried *api.Problem) {
	if refused := c.may(r, a); refused != nil {
		c.problem(w, r, refused)
		return
	}
	page := c.askedOf(r, a, v)
	page.Problem = tried
	if r.Method == http.MethodPost { // no answer may have come to what was done: the same form, sent again, is not done twice
		page.Once = cmp.Or(v.Get("once"), page.Once)
	}
	q := query{c: c, r: r}
	switch {
	case a.preview != "" && fills(a.preview, v):
		if answer := q.call(http.MethodGet, fill(a.preview, v, apiSegment), nil); answer.problem != nil {
			page.Problem = first(page.Problem, answer.problem)
		} else {
			page.Seen, page.Preview = true, without(decode(answer.body), a.leaves)
			if whole, has := page.Preview.(object); has && a.part != "" {
				page.Preview = whole.get(a.part)
			}
			if list, is := page.Preview.([]any); is && len(list) == 0 {
				page.Seen = a.shows != outlook // without workers, as of a gate of commands, it does not say that nothing will be done
			}
		}
	case a.dryRun && (v.Get("preview") != "" || complete(a, v)) && unfit(a, v) == nil:
		body := a.body(v)
		body["dry_run"], body["reason"] = true, "preview"
		if answer := q.call(a.method, fill(a.path, v, apiSegment), body); answer.problem != nil {
			page.Problem = first(page.Problem, answer.problem)
		} else {
			page.Seen, page.Preview = true, decode(answer.body)
		}
	}
	c.show(w, r, status, "act", shell{Title: page.Title, Data: page})
}

// without leaves out members of the objects of a list.
func without(v any, names []string) any {
	list, _ := v.([]any)
	for i, item := range list {
		o, _ := item.(object)
		list[i] = slices.DeleteFunc(o, func(f fact) bool { return slices.Contains(names, f.Name) })
	}
	return v
}

func first(problems ...*api.Problem) *api.Problem {
	for _, p := range problems {
		if p != nil {
			return p
		}
	}
	return nil
}

// complete tells whether the link says enough for a preview: some field of the act that says what, where it has any.
func complete(a act, v url.Values) bool {
	says := slices.DeleteFunc(slices.Clone(a.fields), func(f field) bool { return f.How })
	return len(says) == 0 || slices.ContainsFunc(says, func(f field) bool { return v.Get(f.Name) != "" })
}

func (c *console) askedOf(r *http.Request, a act, v url.Values) asked {
	page := asked{
		Act: r.PathValue("act"), Title: fill(a.title, v, plain), Button: a.button, Warn: a.warn, Values: v, Reason: v.Get("reason"), Fields: a.fields,
		Shows: cmp.Or(a.shows, map[bool]string{true: "What it would do", false: "As it is now"}[a.dryRun]), Once: rand.Text(), Back: fill(a.back, v, segment),
		Dry: a.dryRun && slices.ContainsFunc(a.fields, func(f field) bool { return !f.How }), Danger: a.typed,
	}
	if a.danger != "" {
		page.Danger = v.Get(a.danger)
	}
	own := map[string]bool{"reason": true, "typed": true, "done": true, "preview": true, "once": true}
	for _, f := range a.fields {
		own[f.Name] = true
	}
	for name := range v {
		if !own[name] {
			page.Given = append(page.Given, name)
		}
	}
	return page
}

// do does an act.
func (c *console) do(w http.ResponseWriter, r *http.Request) {
	a, known := acts[r.PathValue("act")]
	if err := r.ParseForm(); err != nil || !known {
		c.problem(w, r, &api.Problem{Status: http.StatusBadRequest, Title: "Bad request", Detail: "the form cannot be read, or its act is unknown"})
		return
	}
	v := r.PostForm
	if refused := c.may(r, a); refused != nil {
		c.problem(w, r, refused)
		return
	}
	if p := unfit(a, v); p != nil {
		c.showAct(w, r, p.Status, a, v, p)
		return
	}
	if v.Get("preview") != "" {
		c.showAct(w, r, http.StatusOK, a, v, nil)
		return
	}
	page := c.askedOf(r, a, v)
	if page.Danger != "" && v.Get("typed") != page.Danger {
		c.showAct(w, r, http.StatusUnprocessableEntity, a, v, &api.Problem{
			Status: http.StatusUnprocessableEntity, Title: "Not done", Detail: "nothing was done: what you typed is not " + page.Danger,
		})
		return
	}
	body := a.body(v)
	body["reason"] = v.Get("reason")
	answer := query{c: c, r: r, once: v.Get("once")}.call(a.method, fill(a.path, v, apiSegment), body)
	c.cache.clear()
	if answer.problem != nil {
		if answer.problem.Code == "TM005" { // perhaps the key was used for another request
			v.Del("once")
		}
		c.showAct(w, r, answer.problem.Status, a, v, answer.problem)
		return
	}
	page.Result = decode(answer.body)
	answered, _ := page.Result.(object)
	if a.back != "" {
		done := cmp.Or(a.done, "1")
		if answered.get("changed") == false {
			done = "same"
		}
		http.Redirect(w, r, c.Prefix+page.Back+"?done="+done, http.StatusSeeOther)
		return
	}
	if next, more := answered.get("next").(json.Number); more && a.again {
		result := page.Result
		v.Set("after", next.String())
		page = c.askedOf(r, a, v)
		page.Result, page.Next = result, next.String()
		v.Del("once")
		page.Given = slices.Sorted(maps.Keys(v)) // the same is asked for, and was confirmed
	}
	c.show(w, r, http.StatusOK, "result", shell{Title: page.Title, Data: page})
}
