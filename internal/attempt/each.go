package attempt

// The same question to many nodes.

import (
	"iter"

	"github.com/seed-a3166700/turnstile/zk"
)

const (
	atOnce      = 1000      // requests that are sent together
	bytesAtOnce = 256 << 10 // of paths that are sent together
)

// Each asks the same about many nodes, many with one wait, and yields each path with its reply, in their order. The
// number and the size of what is sent together is bounded, so that the requests of others on the connection, and its
// pings, do not wait for long. The caller may stop at any of them.
func Each[T any](
	sess *zk.Session, paths []string, ask func(b *zk.Batch, path string) *zk.Future[T],
) iter.Seq2[string, *zk.Future[T]] {
	return func(yield func(string, *zk.Future[T]) bool) {
		for len(paths) > 0 {
			b := sess.Batch()
			var replies []*zk.Future[T]
			for size := 0; len(replies) < min(len(paths), atOnce) && size < bytesAtOnce; {
				path := paths[len(replies)]
				replies = append(replies, ask(b, path))
				size += len(path)
			}
			b.Send()
			for i, reply := range replies {
				if !yield(paths[i], reply) {
					for _, rest := range replies[i+1:] {
						rest.Abandon()
					}
					return
				}
			}
			paths = paths[len(replies):]
		}
	}
}
