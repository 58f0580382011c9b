package server

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// faulty is a disk whose every write fails, or waits until the channel is closed.
type faulty struct {
	err  error
	hang chan struct{}
}

func (f faulty) String() string { return "faulty" }

func (f faulty) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	if f.hang != nil {
		<-f.hang
	}
	return f.err
}

func TestStartOnAFullDiskIsADiskError(t *testing.T) {
	t.Parallel()
	cfg := Config{Data: "data", Listen: []string{"127.0.0.1:0"}}
	_, err := startUntil(t.Context(), cfg, disk{fs: errorfs.Wrap(vfs.NewMem(), faulty{err: syscall.ENOSPC})})
	if _, ok := errors.AsType[*DiskError](err); !ok || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want a DiskError for want of space", err)
	}
}

func TestStartEndsWithItsContextWhileTheDiskDoesNotAnswer(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	cfg := Config{Data: "data", Listen: []string{"127.0.0.1:0"}}
	s, err := startUntil(ctx, cfg, disk{fs: errorfs.Wrap(vfs.NewMem(), faulty{hang: hang})})
	if s != nil || !errors.Is(err, why) {
		t.Errorf("got %v %v, want %v", s, err, why)
	}
}

func TestFullDiskOfARunningServerIsADiskError(t *testing.T) {
	t.Parallel()
	var full errorfs.Toggle
	full.Injector = faulty{err: syscall.ENOSPC}
	s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(vfs.NewMem(), &full)})
	full.On()
	if c, err := s.connect(wire.ConnectRequest{}); err == nil { // a write
		_ = c.nc.Close()
		t.Error("a session was made that is not on the disk")
	}
	<-s.Done()
	_, ok := errors.AsType[*DiskError](s.Err())
	if !ok || !errors.Is(s.Err(), syscall.ENOSPC) || !strings.Contains(s.Err().Error(), "cannot write to data") {
		t.Errorf("got %v, want a DiskError for want of space", s.Err())
	}
}
