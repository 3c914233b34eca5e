package oracle

import "strings"

// Matches reports whether the route claims the event, by domain, type, stream, key and payload. Switches
// play no part.
func Matches(r Route, event Event) bool {
	return (r.Domain == "*" || r.Domain == event.Domain) &&
		PatternMatches(r.Type, event.Type) &&
		(r.Stream == nil || event.Stream != nil && *r.Stream == *event.Stream) &&
		(r.KeyFilter == nil || event.Key != nil && PatternMatches(*r.KeyFilter, *event.Key)) &&
		(r.PayloadFilter == nil || Contains(event.Payload, r.PayloadFilter))
}

// PatternMatches reports whether the value is the pattern, or begins with what stands before the pattern's
// final "*".
func PatternMatches(pattern, value string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(value, prefix)
	}
	return pattern == value
}
