package api

import (
	"context"
	"fmt"
	"strings"
)

// Role is what a person may do. Each role may do all that the ones before it may.
type Role int

// The roles.
const (
	Viewer   Role = iota + 1 // sees everything but payloads
	Operator                 // sees payloads, replays, pauses, opens and closes gates
	Admin                    // changes routes, workers, types, the stage
)

var roleNames = []string{Viewer: "viewer", Operator: "operator", Admin: "admin"}

// String is the role's name.
func (r Role) String() string {
	if r < Viewer || r > Admin {
		return "nobody"
	}
	return roleNames[r]
}

// ParseRole reads the name of a role.
func ParseRole(name string) (Role, error) {
	for role := Viewer; role <= Admin; role++ {
		if name == roleNames[role] {
			return role, nil
		}
	}
	return 0, fmt.Errorf("%q is not a role: viewer, operator or admin", name)
}

// Person is who makes a request.
type Person struct {
	Name string `json:"name"`
	Role Role   `json:"-"`
}

type personKey struct{}

// WithPerson returns a context whose requests are those of the person.
func WithPerson(ctx context.Context, p Person) context.Context {
	p.Name = clean(p.Name)
	return context.WithValue(ctx, personKey{}, p)
}

// PersonOf returns the person of a request.
func PersonOf(ctx context.Context) (Person, bool) {
	p, known := ctx.Value(personKey{}).(Person)
	return p, known && p.Role >= Viewer && p.Name != ""
}

// clean makes a name fit for the audit: one line of at most 256 bytes that PostgreSQL can store.
func clean(name string) string {
	name = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, name), "")
	if len(name) > 256 {
		name = strings.ToValidUTF8(name[:256], "")
	}
	return name
}
