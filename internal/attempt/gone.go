package attempt

// Whether a node of the caller's own is still there.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// AwaitGone waits until a node that the caller has made is gone, and returns true. It is gone once another client has
// deleted it, even if one has made it again since. Czxid is that of its creation, or 0 if that is not known. AwaitGone
// returns false if ctx ends first. No refusal ends it, or the caller would rely on a node that is not looked at any
// more.
func AwaitGone(ctx context.Context, sess *zk.Session, path string, czxid int64) bool {
	for tries := 0; ctx.Err() == nil; {
		_, stat, watch, err := sess.GetW(ctx, path)
		if errors.Is(err, zk.NoNode) {
			return true
		}
		if err == nil {
			tries = 0
			same := czxid == 0 || stat.Czxid == czxid
			if same {
				_, err = watch.Next(ctx)
			}
			watch.Close()
			if !same {
				return true
			}
		}
		if err != nil && !errors.Is(err, zk.ErrConnectionLost) {
			_ = Pause(ctx, sess, tries)
			tries++
		}
	}
	return false
}
