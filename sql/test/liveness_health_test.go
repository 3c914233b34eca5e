package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// Numbers that were rolled back at the end of the log are nothing to be behind of.
func TestHealthAfterARollback(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	health := `select concat_ws(' ', status, watermark, last_seq, behind, holes) from tidemark.worker_health`
	w.emit(1)
	w.wantRows(health, "never ran 0 1 1 0")
	w.pass()
	w.begin()
	w.emit(2)
	w.rollback()
	w.wantRows(health, "idle 1 1 0 0")
	w.emit(3)
	w.wantRows(health, "behind 1 3 2 0")
}
