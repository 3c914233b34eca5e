package store_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// What is too large of raw records stays in the database: its size and its sum come.
func TestLargeRecordsStay(t *testing.T) {
	t.Parallel()
	test := tidemarktest.NewDB(t)
	if _, err := test.Pool.Exec(t.Context(), `insert into tidemark.command_record (why, key, value, headers)
		values ('dead_letter', 'k', convert_to(repeat('v', 100), 'UTF8'), '[["a", "eA=="]]'), ('dead_letter', convert_to(repeat('k', 101), 'UTF8'), convert_to(repeat('v', 101), 'UTF8'), null),
			('dead_letter', null, null, null), ('dead_letter', '', '', null)`); err != nil {
		t.Fatal(err)
	}
	all, err := store.New(test.Pool).CommandRecords(t.Context(), []int64{1, 2, 3, 4, 5}, 100)
	if err != nil || len(all) != 4 {
		t.Fatalf("%d records: %v", len(all), err)
	}
	large := func(text string) store.RecordBytes {
		sum := sha256.Sum256(bytes.Repeat([]byte(text), 101))
		return store.RecordBytes{Size: 101, Sum: sum[:]}
	}
	for _, r := range all {
		want := map[int64][2]store.RecordBytes{
			1: {{Bytes: []byte("k"), Size: 1}, {Bytes: bytes.Repeat([]byte("v"), 100), Size: 100}},
			2: {large("k"), large("v")},
			4: {{Bytes: []byte{}}, {Bytes: []byte{}}},
		}[r.ID]
		for n, got := range []store.RecordBytes{r.Key, r.Value} {
			if got.Size != want[n].Size || !bytes.Equal(got.Bytes, want[n].Bytes) || (got.Bytes == nil) != (want[n].Bytes == nil) || !bytes.Equal(got.Sum, want[n].Sum) {
				t.Errorf("record %d: got %+v, want %+v", r.ID, got, want[n])
			}
		}
	}
}
