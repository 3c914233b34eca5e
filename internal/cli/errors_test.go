package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/migrate"
)

func TestReport(t *testing.T) {
	t.Parallel()
	sql := func(code string) error {
		return fmt.Errorf("do: %w", &pgconn.PgError{Severity: "ERROR", Code: code, Message: "no", Detail: "detail"})
	}
	for name, test := range map[string]struct {
		err    error
		status int
		text   string
	}{
		"nothing":   {nil, 0, ""},
		"plain":     {errors.New("no\nway"), 1, "tidemark: no way\n"},
		"hint":      {Hint(errors.New("no"), "yes"), 1, "tidemark: no\nhint: yes\n"},
		"usage":     {Usagef("no"), 2, "tidemark: no\nhint: tidemark x --help\n"},
		"refused":   {tidemark.AsError(&pgconn.PgError{Code: "TM004", Message: "no", Hint: "yes"}), 5, "tidemark: TM004: no\nhint: yes\n"},
		"privilege": {sql("42501"), 5, "tidemark: do: 42501: no: detail\nhint: \"tidemark x\" needs a member of the role r.\n"},
		"privilege with a hint": {
			&pgconn.PgError{Code: "42501", Message: "no", Hint: "yes"}, 5, "tidemark: 42501: no\nhint: yes\n",
		},
		"constraint":    {sql("23514"), 5, "tidemark: do: 23514: no\nhint: The constraint's name says what is taken.\n"},
		"value":         {sql("22003"), 5, "tidemark: do: 22003: no: detail\n"},
		"other SQL":     {sql("XX000"), 1, "tidemark: do: XX000: no: detail\n"},
		"lock":          {sql("55P03"), 6, "tidemark: do: 55P03: no: detail\n"},
		"deadlock":      {sql("40P01"), 6, "tidemark: do: 40P01: no: detail\n"},
		"shut down":     {sql("57P01"), 3, "tidemark: do: 57P01: no: detail\n"},
		"no connection": {sql("53300"), 3, "tidemark: do: 53300: no: detail\n"},
		"connection": {
			&net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}, 3,
			"tidemark: the connection to the database was lost: read tcp: reset\n",
		},
		"connection cut": {io.ErrUnexpectedEOF, 3, "tidemark: the connection to the database was lost: unexpected EOF\n"},
		"older":          {fmt.Errorf("%w: run it", migrate.ErrOlder), 4, "tidemark: the schema is older than this build of tidemark: run it\n"},
		"newer":          {fmt.Errorf("%w: get it", migrate.ErrNewer), 4, "tidemark: the schema is newer than this build of tidemark: get it\n"},
		"interrupted":    {fmt.Errorf("query: %w", context.Canceled), 130, "tidemark: interrupted\n"},
		"terminal":       {errors.New("\x1b[2Jx"), 1, "tidemark: ·[2Jx\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr strings.Builder
			cmd := &cobra.Command{Use: "x", Annotations: map[string]string{roleAnnotation: "r"}}
			cmd.SetErr(&stderr)
			root := &cobra.Command{Use: "tidemark"}
			root.AddCommand(cmd)
			if status := report(cmd, test.err); status != test.status || stderr.String() != test.text {
				t.Errorf("got %d, %s\nwant %d, %s", status, stderr.String(), test.status, test.text)
			}
		})
	}
}
