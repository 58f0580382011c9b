package line

// The same question to many nodes.

import (
	"iter"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// atOnce is how many requests that read something small are sent together.
const atOnce = 1000

// Each asks the same about many nodes, many with one wait, and yields each path with its reply, in their order. The
// caller may stop at any of them.
func Each[T any](
	sess *zk.Session, paths []string, ask func(b *zk.Batch, path string) *zk.Future[T],
) iter.Seq2[string, *zk.Future[T]] {
	return func(yield func(string, *zk.Future[T]) bool) {
		for chunk := range slices.Chunk(paths, atOnce) {
			b := sess.Batch()
			replies := make([]*zk.Future[T], len(chunk))
			for i, path := range chunk {
				replies[i] = ask(b, path)
			}
			b.Send()
			for i, path := range chunk {
				if !yield(path, replies[i]) {
					for _, rest := range replies[i+1:] {
						rest.Abandon()
					}
					return
				}
			}
		}
	}
}
