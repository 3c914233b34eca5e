package main

import (
	"bytes"
	"os"
	"testing"
)

// The picture in docs/ is what the report gives.
func TestChart(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	if err := chart(&got, "results/2026-11-21-w1.md"); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../docs/routing.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("docs/routing.svg is not the picture of this report: bench/README.md says how to draw it")
	}
}
