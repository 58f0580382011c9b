package counter

import (
	"errors"
	"math"
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
)

// A node has to be written four billion times to get there, so the test does without a server.
//
// Promise: 14
func TestWriteAtTheVersionThatMeansAnyIsRefused(t *testing.T) {
	t.Parallel()
	for version, refused := range map[int32]bool{
		0: false, math.MaxInt32: false, math.MinInt32: false, -2: false, -1: true,
	} {
		_, err := content{exists: true, stat: zk.Stat{Version: version}}.change(nil)
		if errors.Is(err, ErrVersions) != refused {
			t.Errorf("version %d: got %v, want it refused: %v", version, err, refused)
		}
	}
}

// The version goes on from 2147483647 at -2147483648. What is known after a lost reply does, too.
//
// Promise: 14
func TestVersionIsKnownAfterALostReplyAcrossTheOverflow(t *testing.T) {
	t.Parallel()
	old := content{exists: true, stat: zk.Stat{Czxid: 3, Mzxid: 4, Version: math.MaxInt32}}
	now, err := old.after([]byte("x"), zk.Stat{Mzxid: 9})
	if err != nil || now.stat.Version != math.MinInt32 || now.stat.Mzxid != 9 || now.stat.Czxid != 3 {
		t.Errorf("got %+v, %v", now, err)
	}
}
