// Package oneline makes foreign text safe to print on one line.
package oneline

import "strings"

// Clean makes text safe to print on one line. Line ends and tabs become spaces. Other control characters, which could
// control the terminal, and characters that change the direction of text become "·".
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u2028', r == '\u2029':
			return ' '
		case r < ' ', r >= 0x7f && r < 0xa0, changesDirection(r):
			return '·'
		default:
			return r
		}
	}, text)
}

// changesDirection reports whether the character changes the direction of the text around it.
func changesDirection(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}
