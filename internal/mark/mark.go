// Package mark says what can be a mark of a daemon, by which two live copies of a database notice each other. Anyone with a right on the
// place of the marks can leave anything there.
package mark

import "slices"

// most is how many marks a look at a broker hears. Each is a row for an hour, and one is enough to notice a copy.
const most = 10

// Valid reports whether the text is one that tidemark.copies_compare makes: a UUID of 36 characters, as PostgreSQL writes it.
func Valid[T string | []byte](text T) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// Add appends a text to the marks of a look, if it is one that they do not have yet and have room for.
func Add[T string | []byte](heard []string, text T) []string {
	if len(heard) == most || !Valid(text) || slices.Contains(heard, string(text)) {
		return heard
	}
	return append(heard, string(text))
}
