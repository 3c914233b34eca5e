package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
)

func commandSeek() cli.Command {
	var partition int
	var offset int64
	return cli.Command{
		Use: "seek TOPIC", Short: "Set where the consumer goes on in a partition", Role: "tidemark_admin", Reason: cli.NeedsReason,
		Long: `Set where the consumer of commands goes on in a partition of a topic, and accept the topic as it is: the way on after the finding
command_partition_held, or past a record that cannot be read. Records that are passed over are not read. Those that are read once more do
not run again if they were claimed, for as long as their claims are kept.`,
		Example: "  tidemark command seek billing.commands --partition 0 --offset 1200 --reason 'the records before it are lost'",
		Flags: func(flags *pflag.FlagSet) {
			flags.IntVar(&partition, "partition", 0, "`PARTITION` of the topic (required)")
			flags.Int64Var(&offset, "offset", 0, "`OFFSET` of the next record that is read (required)")
		},
		Run: func(ctx context.Context, s *cli.Session) error {
			if !s.Given("partition") || !s.Given("offset") {
				return cli.Usagef("--partition and --offset are required")
			}
			sought, err := cli.InTx(ctx, s, func(db *store.DB) (store.CommandSought, error) {
				return db.CommandSeek(ctx, s.Arg(0), partition, offset, s.Reason)
			})
			if err != nil {
				return err
			}
			return s.Result(sought, "partition %d of %s goes on at offset %d; it was at %d", partition, s.Arg(0), offset, sought.Was)
		},
	}
}
