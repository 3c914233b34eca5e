// Package oneline makes lines of text that others wrote.
package oneline

import "strings"

// Clean keeps text from breaking a line, from steering the terminal, and from showing its letters in another order than
// they stand in. Line ends and tabs become spaces, everything else of that kind "·".
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u2028', r == '\u2029':
			return ' '
		case r < ' ', r >= 0x7f && r < 0xa0, turns(r):
			return '·'
		default:
			return r
		}
	}, text)
}

// turns: the character changes the direction of those about it.
func turns(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}
