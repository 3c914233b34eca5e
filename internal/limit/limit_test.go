package limit_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/internal/limit"
	"github.com/tidemarkhq/tidemark/sql"
)

// tidemark.claim refuses the leases that Go refuses.
func TestSQLHasTheseLimits(t *testing.T) {
	t.Parallel()
	files, err := sql.Code(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	bounds := regexp.MustCompile(`lease not between interval '(\d+) seconds' and interval '(\d+) hour'`)
	found := 0
	for _, file := range files {
		for _, m := range bounds.FindAllStringSubmatch(file.Text, -1) {
			found++
			low, _ := time.ParseDuration(m[1] + "s")
			high, _ := time.ParseDuration(m[2] + "h")
			if low != limit.MinLease || high != limit.MaxLease {
				t.Errorf("%s: a lease is from %s to %s", file.Path, low, high)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d functions check the lease, want one", found)
	}
}
