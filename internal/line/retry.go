package line

// The earlier names of what package attempt now has, until all recipes use that.

import (
	"context"
	"iter"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Attempt is attempt.Run.
func Attempt[T any](ctx context.Context, client *zk.Client, try func(*zk.Session) (T, error)) (T, error) {
	return attempt.Run(ctx, client, try)
}

// AwaitRetry is attempt.Again.
func AwaitRetry(ctx context.Context, sess *zk.Session, err error) error {
	return attempt.Again(ctx, sess, err)
}

// Transient is zk.Temporary.
func Transient(err error) bool { return zk.Temporary(err) }

// Explain is attempt.Explain.
func Explain(client *zk.Client, err error) error { return attempt.Explain(client, err) }

// Barrier is attempt.Fence.
func Barrier(b *zk.Batch, _ string) (passed func(context.Context) error) { return attempt.Fence(b) }

// RemoveCreated is attempt.RemoveCreated.
func RemoveCreated(sess *zk.Session, dir, prefix string) { attempt.RemoveCreated(sess, dir, prefix) }

// Removal is attempt.Removal.
type Removal = attempt.Removal

// RemoveBy is attempt.RemoveBy.
func RemoveBy(f func() error) *Removal { return attempt.RemoveBy(f) }

// Remove is attempt.Remove.
func Remove(sess *zk.Session, paths ...string) *Removal { return attempt.Remove(sess, paths...) }

// Each is attempt.Each.
func Each[T any](
	sess *zk.Session, paths []string, ask func(b *zk.Batch, path string) *zk.Future[T],
) iter.Seq2[string, *zk.Future[T]] {
	return attempt.Each(sess, paths, ask)
}

// NewGUID is attempt.NewGUID.
func NewGUID() string { return attempt.NewGUID() }

// Reserved is attempt.Reserved.
func Reserved(path string) bool { return attempt.Reserved(path) }

// retry is attempt.Ask.
func retry[T any](ctx context.Context, sess *zk.Session, ask func() (T, error)) (T, error) {
	return attempt.Ask(ctx, sess, ask)
}

func join(dir, name string) string { return attempt.Join(dir, name) }
