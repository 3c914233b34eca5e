package console

import (
	"testing"
)

// A command leads to the act that does the same, or to the page that shows it. One with more than is known leads nowhere.
func TestMends(t *testing.T) {
	t.Parallel()
	c := &console{Options: Options{Prefix: "/tm"}}
	for command, want := range map[string]string{
		`tidemark gate open worker.default.enabled --reason 'its events wait'`:              "/tm/act/gate-open?gate=worker.default.enabled",
		`tidemark dead-letter replay --route 'it'\''s & more'`:                              "/tm/act/letters-replay?route=it%27s+%26+more",
		`tidemark dead-letter replay --code unreadable`:                                     "/tm/act/letters-replay?source=outbox&code=unreadable",
		`tidemark route set billing --concurrency 8 --reason 'its target is slow'`:          "/tm/act/route-edit?columns=%7B%22concurrency%22%3A8%7D&route=billing",
		`tidemark capture route set in --payload-columns id,name --reason 'total is gone'`:  "/tm/act/capture-route-edit?columns=%7B%22payload_columns%22%3A%5B%22id%22%2C%22name%22%5D%7D&route=in",
		`tidemark capture reconcile --table public.orders --emit --reason 'they were lost'`: "/tm/act/capture-emit?table=public.orders",
		`tidemark source set births --sweep-every 3m --reason 'its sweep takes as long'`:    "/tm/act/source-edit?columns=%7B%22sweep_every%22%3A%223m%22%7D&source=births",
		`tidemark worker show a/b`:            "/tm/workers/a%2Fb",
		`tidemark pending list --route 'a b'`: "/tm/waiting?route=a%20b",
		`tidemark route replay billing --from-seq 1 --to-seq 2 --only disabled --reason 'x'`: "",
		`tidemark dead-letter replay --all`:                                                  "",
		`tidemark dead-letter replay`:                                                        "",
		`tidemark run --config 'a file'`:                                                     "",
		`select pg_terminate_backend(1);`:                                                    "",
		``:                                                                                   "",
	} {
		got := ""
		if b := c.mend(command); b != nil {
			got = b.Link
		}
		if got != want {
			t.Errorf("%s leads to %q, want %q", command, got, want)
		}
	}
	for _, m := range mends {
		if name := parameter.ReplaceAllString(m.to, "x"); name[0] != '/' {
			b := c.mend("tidemark " + parameter.ReplaceAllString(m.command, "7"))
			if b == nil || b.Label == "…" {
				t.Errorf("%s: %+v", m.command, b)
			}
		}
	}
}
