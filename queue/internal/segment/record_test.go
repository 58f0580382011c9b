package segment_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
)

func FuzzRecord(f *testing.F) {
	f.Add((&segment.Record{ID: segment.NewID(), Body: []byte("body")}).Encode())
	f.Add((&segment.Record{
		ID: segment.NewID(), Priority: -100, Attempts: 3, Enqueued: 1, Delay: 2, Due: 3,
		Headers: map[string]string{"k": "v"}, Failures: []segment.Failure{{At: time.UnixMilli(5), Reason: "no"}},
		Reason: "bad", Body: []byte{0},
	}).Encode())
	f.Add((&segment.Record{ID: segment.NewID(), Delay: 1, Timeout: 300, Body: []byte("limited")}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := segment.DecodeRecord(data)
		if err != nil {
			return
		}
		again, err := segment.DecodeRecord(r.Encode())
		if err != nil || !reflect.DeepEqual(r, again) || !bytes.Equal(r.Body, again.Body) {
			t.Fatalf("got %+v, %v, want %+v", again, err, r)
		}
	})
}

func TestOnlyRecordsWithATimeLimitAreOfTheNewVersion(t *testing.T) {
	t.Parallel()
	for limit, version := range map[int64]byte{0: 1, 300: 2} {
		r := &segment.Record{ID: segment.NewID(), Due: 7, Timeout: limit, Body: []byte("body")}
		data := r.Encode()
		if data[0] != version {
			t.Errorf("limit %d: got version %d, want %d", limit, data[0], version)
		}
		if got, err := segment.DecodeRecord(data); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("got %+v, %v, want %+v", got, err, r)
		}
	}
}

// Other programs may write any number. With these, sums of times would overflow.
func TestRecordsWithAbsurdNumbersAreNoItems(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]segment.Record{
		"attempts": {Attempts: math.MaxInt}, "enqueued": {Enqueued: math.MaxInt64}, "delay": {Delay: math.MaxInt64},
		"due": {Due: math.MaxInt64}, "timeout": {Timeout: math.MaxInt64},
		"timeout in nanoseconds": {Timeout: int64(math.MaxInt64 / time.Millisecond)},
	} {
		if got, err := segment.DecodeRecord(r.Encode()); !errors.Is(err, segment.ErrRecord) {
			t.Errorf("%s: got %+v, %v, want ErrRecord", name, got, err)
		}
	}
}
