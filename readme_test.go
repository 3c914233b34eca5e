package tidemark_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

func TestMain(m *testing.M) { tidemarktest.Main(m) }

// The five minutes of the README, statement by statement.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	conn := tidemarktest.NewDB(t).Connect(t)
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(readme, -1) {
		if _, err := conn.PgConn().Exec(t.Context(), string(block[1])).ReadAll(); err != nil {
			t.Fatalf("%v\n%s", err, block[1])
		}
	}
	var mail, evidence string
	err = conn.QueryRow(t.Context(), `select (select string_agg(to_whom || ' ' || what, '; ') from mail),
		(select string_agg(route_code || ' ' || outcome, '; ' order by seq) from tidemark.route_attempt)`).Scan(&mail, &evidence)
	if err != nil {
		t.Fatal(err)
	}
	if mail != "bob order.created" || evidence != "order_mail dry_run; order_mail sent" {
		t.Errorf("mail %q, evidence %q", mail, evidence)
	}
}
