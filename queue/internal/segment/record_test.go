package segment_test

import (
	"bytes"
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
