package demo_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// tidemark builds the command.
func tidemark(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tidemark")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/tidemarkhq/tidemark/cmd/tidemark").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// shows asserts that a demo has printed what matches each of the patterns.
func shows(t *testing.T, out *bytes.Buffer, patterns ...string) {
	t.Helper()
	for _, want := range patterns {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("the output does not match %q:\n%s", want, out)
		}
	}
}
