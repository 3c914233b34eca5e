package console

import (
	"encoding/json"
	"net/url"
	"strings"
)

// button leads to what does the same as a command.
type button struct {
	Label, Link string
	Needs       string // role
}

// mends are commands that causes and explanations name, and the act that does the same, or the page that shows the same. A
// {parameter} is a word of the command, and a parameter of the act or page. The reason is left out: the act's page asks for it.
var mends = []struct{ command, to string }{
	{"gate open {gate}", "gate-open"},
	{"worker resume {worker}", "worker-resume"},
	{"route enable {route}", "route-enable"},
	{"route disable {route}", "route-disable"},
	{"route resume {route}", "route-resume"},
	{"route set {route} --dry-run=false", "route-live"},
	{"route set {route} --concurrency {concurrency}", "route-edit"},
	{"route test {route}", "route-test"},
	{"route replay {route} --from-seq {from_seq} --to-seq {to_seq}", "route-replay"},
	{"route replay --cancel {id}", "replay-cancel"},
	{"dead-letter replay {id}", "letter-replay"},
	{"dead-letter replay --route {route}", "letters-replay"},
	{"dead-letter replay --source {source}", "letters-replay"},
	{"dead-letter replay --code {code}", "letters-replay?source=outbox"},
	{"stage live", "stage-live"},
	{"stage dry_run", "stage-dry-run"},
	{"finding ack {id}", "finding-acknowledge"},
	{"heartbeat deregister {executor}", "heartbeat-deregister"},
	{"type set {domain} {type} --enabled", "type-enable"},
	{"capture attach {table}", "capture-attach"},
	{"capture reconcile --table {table} --emit", "capture-emit"},
	{"capture route set {route} --payload-columns {payload_columns}", "capture-route-edit"},
	{"source set {source} --sweep-every {sweep_every}", "source-edit"},
	{"maintain", "maintain"},

	{"worker show {worker}", "/workers/{worker}"},
	{"route show {route}", "/routes/{route}"},
	{"source check {source}", "/sources/{source}"},
	{"capture check", "/sources"},
	{"pending list --route {route}", "/waiting?route={route}"},
	{"pending list --source {source}", "/waiting"},
	{"dead-letter list", "/dead-letters"},
	{"finding list", "/findings"},
	{"gate list", "/settings"},
	{"heartbeat list", "/heartbeats"},
	{"command key list", "/commands"},
}

// mend is what does the same as a command, or nil. A command with more than is known here has none: it does something else.
func (c *console) mend(v any) *button {
	words := shellWords(text(v))
	for i, word := range words {
		if word == "--reason" && i+2 == len(words) {
			words = words[:i]
			break
		}
	}
	for _, m := range mends {
		values, is := matches(strings.Fields("tidemark "+m.command), words)
		if !is {
			continue
		}
		if strings.HasPrefix(m.to, "/") {
			return &button{"Look", c.Prefix + fill(m.to, values, segment), Viewer.String()}
		}
		name, fixed, _ := strings.Cut(m.to, "?")
		switch name {
		case "route-edit", "capture-route-edit":
			values = url.Values{"route": values["route"], "columns": {columnsOf(values)}}
		case "source-edit":
			values = url.Values{"source": values["source"], "columns": {columnsOf(values)}}
		}
		query := values.Encode()
		if fixed != "" {
			query = fixed + "&" + query
		}
		return &button{acts[name].button + "…", c.Prefix + "/act/" + name + "?" + query, acts[name].role.String()}
	}
	return nil
}

// columnsOf are the columns that the flags of a command set, as the form of an editor has them.
func columnsOf(v url.Values) string {
	columns := map[string]any{}
	if list := v.Get("payload_columns"); list != "" {
		columns["payload_columns"] = strings.Split(list, ",")
	}
	if n := number(v.Get("concurrency")); n > 0 {
		columns["concurrency"] = n
	}
	if every := v.Get("sweep_every"); every != "" {
		columns["sweep_every"] = every
	}
	text, _ := json.Marshal(columns) // names and numbers: it cannot fail
	return string(text)
}

// matches tells whether a command has the words of a pattern, and returns its parameters.
func matches(pattern, words []string) (url.Values, bool) {
	if len(pattern) != len(words) {
		return nil, false
	}
	values := url.Values{}
	for i, p := range pattern {
		switch {
		case parameter.MatchString(p) && !strings.HasPrefix(words[i], "--"):
			values.Set(p[1:len(p)-1], words[i])
		case p != words[i]:
			return nil, false
		}
	}
	return values, true
}

// shellWords are the words of a command as a shell reads it: with '…' and \c.
func shellWords(command string) (words []string) {
	var word strings.Builder
	inWord, quoted, escaped := false, false, false
	for _, r := range command {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\'':
			quoted, inWord = !quoted, true
		case quoted:
			word.WriteRune(r)
		case r == '\\':
			escaped, inWord = true, true
		case r == ' ':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}
