package main

import (
	"bytes"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

const (
	lostFigure     = "lost"
	twiceFigure    = "twice"
	disorderFigure = "out of order"
)

// figures are what the events came to.
func figures(b trial.Balance) map[string]float64 {
	return map[string]float64{lostFigure: float64(b.Lost), twiceFigure: float64(b.Twice), disorderFigure: float64(b.OutOfOrder)}
}

var numberField = []byte(`"n":`)

// number finds the event's number in a payload or an envelope around it. -1: there is none.
func number(text []byte) int {
	at := bytes.Index(text, numberField)
	if at < 0 {
		return -1
	}
	n, digits := 0, 0
	for _, c := range text[at+len(numberField):] {
		switch {
		case c >= '0' && c <= '9':
			n, digits = 10*n+int(c-'0'), digits+1
		case c != ' ' || digits > 0:
			if digits == 0 {
				return -1
			}
			return n
		}
	}
	return -1
}
