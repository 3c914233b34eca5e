package cli

import (
	"context"
	"strings"
)

// Pause is a command that pauses a thing of the kind, or lets it go on.
func Pause(name, kind, short string, pause bool, set func(context.Context, *Session) (changed bool, err error)) Command {
	return Command{
		Use: name + " " + strings.ToUpper(kind), Short: short, Role: "tidemark_admin", Reason: MayGiveReason,
		Run: func(ctx context.Context, s *Session) error {
			changed, err := set(ctx, s)
			if err != nil {
				return err
			}
			done := Choose(changed, name+"d", Choose(pause, "was paused already", "was not paused"))
			return s.Result(Fields{kind, s.Arg(0), "paused", pause, "changed", changed}, "%s %s: %s", kind, s.Arg(0), done)
		},
	}
}
