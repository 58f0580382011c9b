package waits_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Who may write there may write anything: it is not kept, and at some time no longer read.
func TestWhatIsNoRecordIsNotKept(t *testing.T) {
	t.Parallel()
	sess := zktest.Run(t).Session(t, time.Minute)
	create := func(path string, data []byte, mode zk.Mode) {
		t.Helper()
		if _, err := sess.Create(t.Context(), path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	create("/waits", nil, zk.Persistent)
	mine := fmt.Sprintf("__0x%x-", uint64(sess.ID()))
	long := append([]byte(`{"waits": []}`), bytes.Repeat([]byte(" "), 300<<10)...)
	var others []zk.Op
	for i := range 20_000 {
		others = append(others, zk.CreateOp(fmt.Sprint("/waits/__0-", i), nil, zk.Persistent))
	}
	for some := range slices.Chunk(others, 5000) {
		if _, err := sess.Multi(t.Context(), some...); err != nil {
			t.Fatal(err)
		}
	}
	create("/waits/"+mine, []byte(`{"owner": {"host": "here"}}`), zk.Ephemeral)
	create("/waits/"+mine+"long", long, zk.Ephemeral)
	create("/waits/"+mine+"stays", []byte("{}"), zk.Persistent)
	create("/waits/__0x1-", []byte("{}"), zk.Ephemeral)
	create("/waits/"+mine+"else", []byte("what"), zk.Ephemeral)
	records, err := waits.Read(t.Context(), sess, "/waits")
	if err != nil || len(records) != 1 || records[mine] == nil || records[mine].Owner.Host != "here" {
		t.Errorf("got %v, %v; want the one of %s", records, err, mine)
	}
	for i := range 40 {
		create(fmt.Sprintf("/waits/%s%d", mine, i), bytes.Repeat([]byte(" "), 1_000_000), zk.Ephemeral)
	}
	if records, err = waits.Read(t.Context(), sess, "/waits"); err != nil || len(records) > 1 {
		t.Errorf("got %v, %v; want no more than that one", records, err)
	}
}
