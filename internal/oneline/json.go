package oneline

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// JSON escapes in JSON the characters that Clean replaces. The JSON has the same value, and a terminal that shows it is
// not controlled by it: encoding/json escapes only the control characters of ASCII below the space.
func JSON(text []byte) []byte {
	plain := true
	for _, b := range text {
		plain = plain && b < 0x7f
	}
	if plain {
		return text
	}
	out := bytes.NewBuffer(make([]byte, 0, len(text)+64))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || changesDirection(r) {
			fmt.Fprintf(out, `\u%04x`, r)
		} else {
			out.Write(text[:size])
		}
		text = text[size:]
	}
	return out.Bytes()
}

// JSONWriter passes on what JSON makes of each write, which must hold whole characters.
type JSONWriter struct{ io.Writer }

func (w JSONWriter) Write(text []byte) (int, error) {
	if _, err := w.Writer.Write(JSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
