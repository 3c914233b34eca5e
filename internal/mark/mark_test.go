package mark_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/mark"
)

func TestAdd(t *testing.T) {
	t.Parallel()
	const good = "0b7e9a54-58c3-4a5e-9d0f-6f1f0c3a2b1d"
	heard := mark.Add(nil, good)
	for _, bad := range []string{
		"", "\x00", good[1:], good + "0", good + "\n", strings.ToUpper(good), "{" + good[2:] + "}", strings.ReplaceAll(good, "-", "0"),
		"\x00" + good[1:], "\xff" + good[1:], "g" + good[1:], "é" + good[2:], "0-7e9a54058c3-4a5e-9d0f-6f1f0c3a2b1d", strings.Repeat("0", 1<<20),
	} {
		if heard = mark.Add(heard, bad); len(heard) > 1 {
			t.Fatalf("%.50q is a mark", bad)
		}
	}
	heard = mark.Add(heard, []byte(good))
	if !slices.Equal(heard, []string{good}) {
		t.Errorf("heard %v", heard)
	}
	for n := range 2000 {
		heard = mark.Add(heard, fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
	}
	if len(heard) != 10 || heard[0] != good {
		t.Errorf("heard %v", heard)
	}
}
