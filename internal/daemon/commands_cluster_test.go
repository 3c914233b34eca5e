package daemon_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// LI6: as long as the cluster has no name but the connection's, and a key is registered, a finding says what signatures do not tell.
func TestCommandsOfAClusterWithoutAName(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if _, err := kadm.NewClient(s.client).CreateTopic(t.Context(), 1, 1, nil, "db-events"); err != nil {
		t.Fatal(err)
	}
	execSQL(t, s.db, `select tidemark.producer_key_add('k', $1, 'shop', '{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}')`, s.name)
	s.open()
	p := run(t, s.config)
	s.eventually("the finding is open", `select string_agg(subject, ' ') from tidemark.finding where kind = 'command_setup' and closed_at is null and detail like 'commands.cluster is not set%'`, "db-events")
	p.stop()
	c := s.config
	c.Commands.Cluster = "main" // the same, and said
	p = run(t, c)
	s.eventually("the finding is closed", `select count(*)::text from tidemark.finding where kind = 'command_setup' and closed_at is not null`, "1")
	p.stop()
}
