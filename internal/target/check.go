package target

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// Problem says what is wrong with a target. It never repeats a value that may be a secret.
type Problem struct {
	Text string
	Hint string
}

func (p *Problem) Error() string { return p.Text }

// Check returns the first problem of the kind, the reference or the options of a route's target, or nil. It mirrors
// tidemark.target_problem; TestTargetsAgreeWithSQL compares the two.
func Check(kind, ref string, options json.RawMessage) *Problem {
	i := slices.IndexFunc(known.Kinds, func(k Kind) bool { return k.Kind == kind })
	if i < 0 {
		return &Problem{fmt.Sprintf("there is no kind of target %q", shown(kind)), "Kinds: " + strings.Join(names(), ", ") + "."}
	}
	k := known.Kinds[i]
	if p := k.reference(ref); p != nil {
		return p
	}
	given := map[string]json.RawMessage{}
	if len(options) > 0 {
		if err := json.Unmarshal(options, &given); err != nil || given == nil {
			return &Problem{"options must be an object", ""}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		of := Options(kind)
		i := slices.IndexFunc(of, func(o Option) bool { return o.Option == name })
		if i < 0 {
			return &Problem{fmt.Sprintf("there is no option %q for %s", shown(name), kind), optionsHint(kind)}
		}
		if p := of[i].check(given[name]); p != nil {
			return p
		}
	}
	return k.oneOf(given)
}

func names() (all []string) {
	for _, k := range known.Kinds {
		all = append(all, k.Kind)
	}
	return all
}

func optionsHint(kind string) string {
	var all []string
	for _, o := range Options(kind) {
		all = append(all, o.Option)
	}
	if all == nil {
		return fmt.Sprintf("A route to %s takes no options.", kind)
	}
	return fmt.Sprintf("Options of %s: %s.", kind, strings.Join(all, ", "))
}

// reference returns the first problem of target_ref, or nil.
func (k Kind) reference(ref string) *Problem {
	hint := fmt.Sprintf("For %s, target_ref is %s, such as %s.", k.Kind, k.Ref, k.Example)
	if !utf8.ValidString(ref) || strings.ContainsRune(ref, 0) {
		return &Problem{"target_ref must be text", hint}
	}
	for _, r := range k.Rules {
		if r.Must != nil && !r.Must.MatchString(ref) || r.Not != nil && r.Not.MatchString(ref) {
			return &Problem{"target_ref " + r.Problem, hint}
		}
	}
	if len(ref) > k.MaxBytes {
		return &Problem{fmt.Sprintf("target_ref has more than %d bytes", k.MaxBytes), hint}
	}
	if k.URL {
		// Parameters of the query and of the path. The rules above have refused encoded names.
		for _, part := range strings.FieldsFunc(ref, func(r rune) bool { return strings.ContainsRune("?&;", r) })[1:] {
			name, _, _ := strings.Cut(part, "=")
			if name = lower(name); known.SecretName.MatchString(name) {
				return &Problem{
					"target_ref holds a secret in plain text, the parameter " + shown(name),
					`Readers and the audit see target_ref. Send it as a header: the option headers, {"Authorization": {"secret": "NAME"}}.`,
				}
			}
		}
	}
	return nil
}

func (k Kind) oneOf(given map[string]json.RawMessage) *Problem {
	if k.OneOf == nil {
		return nil
	}
	var chosen, meanings []string
	for _, name := range k.OneOf {
		if value, ok := given[name]; ok && string(value) != "false" {
			chosen = append(chosen, name)
		}
	}
	for _, o := range Options(k.Kind) {
		if slices.Contains(k.OneOf, o.Option) {
			meanings = append(meanings, o.Option+": "+o.Meaning)
		}
	}
	hint := strings.Join(meanings, "; ") + "."
	switch len(chosen) {
	case 0:
		return &Problem{fmt.Sprintf("a route to %s needs the option %s", k.Kind, strings.Join(k.OneOf, " or ")), hint}
	case 1:
		return nil
	default:
		return &Problem{fmt.Sprintf("the options %s exclude each other", strings.Join(chosen, " and ")), hint}
	}
}

// check returns the problem of an option's value, or nil.
func (o Option) check(value json.RawMessage) *Problem {
	if o.Type == "headers" {
		return checkHeaders(value)
	}
	text, isText := asText(value)
	must, good := o.Must, false
	switch o.Type {
	case "secret":
		good = isText && isSecretName(text)
	case "text":
		good = isText && o.Pattern.MatchString(text) && o.short(text)
	case "boolean":
		good, must = string(value) == "true" || string(value) == "false", "true or false"
	case "choice":
		good, must = isText && slices.Contains(o.Choices, text), "one of "+strings.Join(o.Choices, ", ")
	default:
		good = o.within(value)
		must = fmt.Sprintf("a %s from %s to %s", map[string]string{"whole": "whole number", "number": "number"}[o.Type], o.Min, o.Max)
	}
	if good {
		return nil
	}
	problem := fmt.Sprintf("option %q is %s, must be %s", o.Option, shown(string(value)), must)
	if o.Type == "secret" {
		problem = fmt.Sprintf("option %q must be %s", o.Option, must)
	}
	return &Problem{problem, o.Option + ": " + o.Meaning + "."}
}

func (o Option) short(text string) bool {
	most, err := o.Max.Int64()
	return err != nil || int64(utf8.RuneCountInString(text)) <= most
}

func (o Option) within(value json.RawMessage) bool {
	if len(value) == 0 || len(value) > 100 || !strings.ContainsRune("-0123456789", rune(value[0])) {
		return false
	}
	var number json.Number
	if err := json.Unmarshal(value, &number); err != nil {
		return false
	}
	// As a big.Rat, a number such as 1e999999999 would fill the memory.
	if f, err := number.Float64(); err != nil || f < -1e9 || f > 1e9 || f != 0 && f > -1e-9 && f < 1e-9 {
		return false
	}
	n, fine := new(big.Rat).SetString(number.String())
	low, _ := new(big.Rat).SetString(o.Min.String())
	high, _ := new(big.Rat).SetString(o.Max.String())
	return fine && n.Cmp(low) >= 0 && n.Cmp(high) <= 0 && (o.Type == "number" || n.IsInt())
}

// Header is the value of a header that a route adds: a text, or the name of a secret.
type Header struct {
	Text   string
	Secret string
}

// UnmarshalJSON reads a value that checkHeaders accepts.
func (h *Header) UnmarshalJSON(value []byte) error {
	if text, isText := asText(value); isText {
		*h = Header{Text: text}
		return nil
	}
	var named struct {
		Secret string `json:"secret"`
	}
	err := json.Unmarshal(value, &named)
	*h = Header{Secret: named.Secret}
	return err
}

// ReservedHeader reports whether users may not set the header, since the connection, the request or the envelope sets it.
func ReservedHeader(name string) bool { return known.ReservedHeader.MatchString(lower(name)) }

func checkHeaders(value json.RawMessage) *Problem {
	hint := `headers: {"X-Shop": "1", "Authorization": {"secret": "NAME"}}; NAME is in the daemon's configuration.`
	var all map[string]json.RawMessage
	if err := json.Unmarshal(value, &all); err != nil || all == nil {
		return &Problem{`option "headers" must be an object`, hint}
	}
	seen := map[string]bool{}
	for _, header := range slices.Sorted(maps.Keys(all)) {
		name := lower(header)
		text, isText := asText(all[header])
		switch {
		case !known.HeaderName.MatchString(header):
			return &Problem{`option "headers" has a name that is no header name`, hint}
		case ReservedHeader(header):
			return &Problem{fmt.Sprintf("header %s is reserved", header), hint}
		case seen[name]:
			return &Problem{fmt.Sprintf("header %s is there twice", header), hint}
		case namesSecret(all[header]):
		case !isText:
			return &Problem{fmt.Sprintf(`header %s must be a text or {"secret": "NAME"}`, header), hint}
		case known.SecretName.MatchString(name), known.SecretValue.MatchString(lower(text)):
			return &Problem{
				fmt.Sprintf("header %s holds a secret in plain text", header),
				fmt.Sprintf(`Readers and the audit see options. Write {"headers": {%q: {"secret": "NAME"}}}; NAME is in the daemon's configuration, secrets or oauth2.`, header),
			}
		case !known.HeaderValue.MatchString(text):
			return &Problem{fmt.Sprintf("header %s has a control character in its value", header), hint}
		}
		seen[name] = true
	}
	return nil
}

// namesSecret reports whether the value is {"secret": "NAME"} and nothing else.
func namesSecret(value json.RawMessage) bool {
	var named map[string]json.RawMessage
	if err := json.Unmarshal(value, &named); err != nil || len(named) != 1 {
		return false
	}
	name, isText := asText(named["secret"])
	return isText && isSecretName(name)
}

func isSecretName(text string) bool {
	return known.Name.MatchString(text) && !known.KeyPrefix.MatchString(text)
}

func asText(value json.RawMessage) (text string, isText bool) {
	if len(value) == 0 || bytes.TrimSpace(value)[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(value, &text) == nil
}

// lower changes ASCII letters only, as PostgreSQL's lower does with the collation C.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// shown cuts a value to the length that a problem repeats.
func shown(text string) string {
	const most = 100
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}
