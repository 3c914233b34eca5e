package consumer_test

import "testing"

// A key counts for a second. Where the database takes longer to answer which there are, records of shared topics wait, and it is told why.
func TestConsumerWithASlowPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	private := w.addKey("k1")
	w.exec(`alter table tidemark.producer_key rename to stored_key`)
	w.exec(`create view tidemark.producer_key as with slow as materialized (select pg_sleep(1.2)) select k.* from tidemark.stored_key k, slow`)
	w.send(0, w.sign(w.make("a", 1), "test", "k1", private))
	w.run()
	w.wantTrouble("records of shared topics wait: the database took longer to answer which keys producers have than the answer counts (1s)")
	w.eventually(made)
	w.exec(`drop view tidemark.producer_key; alter table tidemark.stored_key rename to producer_key`)
	w.eventually(made, "1")
	w.wantNoTrouble()
}
