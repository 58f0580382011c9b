package zktest

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// FuzzFrames cuts any stream into frames. No byte may be lost or changed, and decoding may fail but not panic.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("ruok"))
	f.Add([]byte("ro"))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 7, 0xff, 0xff, 0xff, 0xff, 1, 2})
	f.Add([]byte{0, 0, 1, 0, 1, 2, 3})
	whole := wire.AppendRequest(nil, 1, wire.OpMulti, &wire.MultiRequest{Ops: []wire.SubRequest{
		{Op: wire.OpDelete, Request: &wire.DeleteRequest{Path: "/a"}},
	}})
	f.Add(wire.AppendRequest(whole, 2, wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true}))
	f.Fuzz(func(t *testing.T, stream []byte) {
		readers := []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream))}
		for _, r := range readers {
			var got []byte
			for fr := newFrames(r); ; {
				data, framed, err := fr.next()
				if got = append(got, data...); framed {
					_, _ = decodeRequest(data[4:])
				}
				if err != nil {
					if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Errorf("got end of stream %v, want io.EOF or io.ErrUnexpectedEOF", err)
					}
					break
				}
			}
			if !bytes.Equal(got, stream) {
				t.Errorf("got %x, want %x", got, stream)
			}
		}
	})
}
