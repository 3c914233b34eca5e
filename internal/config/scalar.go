package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidemarkhq/tidemark/internal/limit"
)

const plainForm = "letters, digits, _ . and -, at most 63, and none of . and - at the beginning"

var wholeNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// set parses text into v and returns what is wrong with it, or "".
func set(v reflect.Value, text string, tag reflect.StructTag) string {
	want, _ := typeName(v.Type())
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
		return checkText(text, tag)
	case *Secret:
		*p = NewSecret(text)
		return checkSecret(text, tag)
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil || !wholeNumber.MatchString(text) {
			return want
		}
		*p = n
		return checkRange(int64(n), tag, func(s string) int64 {
			n, _ := strconv.ParseInt(s, 10, 64)
			return n
		})
	case *bool:
		*p = strings.EqualFold(text, "true")
		if !*p && !strings.EqualFold(text, "false") {
			return want
		}
	case *time.Duration:
		length, err := time.ParseDuration(text)
		if err != nil {
			return want
		}
		*p = length
		return checkRange(int64(length), tag, func(s string) int64 {
			d, _ := time.ParseDuration(s)
			return int64(d)
		})
	case *netip.Prefix:
		return setNetwork(p, text, want)
	}
	return ""
}

func setNetwork(p *netip.Prefix, text, want string) string {
	if _, err := netip.ParseAddr(text); err == nil {
		return want + "; a single address needs /32 or, for IPv6, /128"
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return want
	}
	if network != network.Masked() {
		return "must be a network: the bits after the first " + strconv.Itoa(network.Bits()) + " must be 0"
	}
	*p = network
	return ""
}

// bounds are those of a tag, LOW..HIGH, or the limits that it names.
func bounds(tag reflect.StructTag) string {
	if tag.Get("range") == "lease" {
		return short(limit.MinLease) + ".." + short(limit.MaxLease)
	}
	return tag.Get("range")
}

func checkRange(n int64, tag reflect.StructTag, parse func(string) int64) string {
	low, high, bounded := strings.Cut(bounds(tag), "..")
	if bounded && (n < parse(low) || n > parse(high)) {
		return fmt.Sprintf("must be from %s to %s", low, high)
	}
	return ""
}

func checkSecret(text string, tag reflect.StructTag) string {
	if text == "" && tag.Get("empty") != "default" {
		return "is empty"
	}
	if text == redacted {
		return "is redacted: config print does not print secrets"
	}
	return checkForm(text, tag)
}

func checkText(text string, tag reflect.StructTag) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "must be one line of text"
	}
	if choices := tag.Get("enum"); choices != "" && !slices.Contains(strings.Split(choices, ","), text) {
		return "must be one of " + strings.ReplaceAll(choices, ",", ", ")
	}
	return checkForm(text, tag)
}

func checkForm(text string, tag reflect.StructTag) string {
	form := tag.Get("is")
	if form == "" || text == "" || forms[form](text) {
		return ""
	}
	return "must be " + formNames[form]
}

var formNames = map[string]string{ //nolint:gosec // token_url is a form, no token
	"name":      "a plain name: " + plainForm,
	"database":  "a postgres:// URL (an @ is %40 but for the one before the host; in a password / is %2F and ? is %3F), or key=value pairs such as host=… dbname=…",
	"listen":    "HOST:PORT, such as 127.0.0.1:9321 or :9321",
	"address":   "HOST:PORT, such as kafka-1.example.com:9092",
	"token_url": "an https:// or http:// URL with a host, and no user, password or fragment in it",
	"nats":      "a nats:// or tls:// URL with a host, several with commas between them, and no user or password in it",
}

var forms = map[string]func(string) bool{
	"name":      plainKey.MatchString,
	"database":  isDatabase,
	"listen":    func(text string) bool { return isAddress(text, true) },
	"address":   func(text string) bool { return isAddress(text, false) },
	"token_url": isTokenURL,
	"nats":      isNATS,
}

// isDatabase is a first look: the driver takes the text apart later.
func isDatabase(text string) bool {
	if scheme, _, ok := strings.Cut(text, "://"); ok && !strings.Contains(scheme, "=") {
		return (scheme == "postgres" || scheme == "postgresql") && !SplitsPassword(text)
	}
	return strings.Contains(text, "=")
}

// SplitsPassword tells whether a URL of a database may have a password with an @, / or ? in it. The driver ends the password there, and
// takes the rest of it for the name of the host or of the database, or for a parameter, which errors print. So NAME:TEXT is the beginning
// of a password where an @, / or ? comes before the last @, also where TEXT may be a port. Only an @ in the value of a parameter that may
// have one is not counted: a password does not go on with ?user= by chance.
func SplitsPassword(address string) bool {
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL || strings.Contains(scheme, "=") {
		return false
	}
	front, query, _ := strings.Cut(rest, "?")
	if strings.ContainsAny(front, "@/") && !slices.ContainsFunc(strings.Split(query, "&"), hasStrayAt) {
		rest = front
	}
	_, password, _ := strings.Cut(addressIPv6.ReplaceAllString(rest[:max(0, strings.LastIndex(rest, "@"))], ""), ":")
	return strings.ContainsAny(password, "@/?#")
}

var addressIPv6 = regexp.MustCompile(`\[[0-9A-Fa-f:.]+\](:[0-9]+)?`)

// hasStrayAt tells whether there is an @ elsewhere than in the value of a parameter that may have one.
func hasStrayAt(parameter string) bool {
	key, _, _ := strings.Cut(parameter, "=")
	return strings.Contains(parameter, "@") && !slices.Contains([]string{
		"application_name", "dbname", "host", "krbspn", "options", "passfile", "password", "service", "servicefile",
		"sslcert", "sslkey", "sslpassword", "sslrootcert", "user",
	}, key)
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

// isAddress checks HOST:PORT. An address to listen at may lack the host and have port 0.
func isAddress(text string, listen bool) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || !wholeNumber.MatchString(port) {
		return false
	}
	n, err := strconv.Atoi(port)
	if err != nil || n > 65535 || n < 0 || (n == 0 && !listen) {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return hostName.MatchString(host) || (host == "" && listen)
}

func isTokenURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil && !strings.Contains(text, "#")
}

func isNATS(text string) bool {
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.User != nil || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return false
		}
		if u.Host == "" || (u.Port() == "" && !hostName.MatchString(u.Hostname())) {
			return false
		}
	}
	return true
}
