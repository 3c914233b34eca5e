package cli

import (
	"context"
	"strings"
)

// Delete is the command that deletes what its arguments name. The database refuses what is in use.
func Delete(use, short string, del func(ctx context.Context, s *Session) error) Command {
	return Command{
		Use: "delete " + use, Short: short, Role: "tidemark_admin", Reason: NeedsReason,
		Run: func(ctx context.Context, s *Session) error {
			if err := del(ctx, s); err != nil {
				return err
			}
			return s.Result(Fields{"deleted", s.Args}, "%s: deleted", strings.Join(s.Args, "/"))
		},
	}
}
