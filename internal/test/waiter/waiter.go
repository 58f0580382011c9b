// Package waiter tells tests when a contender waits.
package waiter

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Await returns when a contender waits at the path.
func Await(tb testing.TB, client *zk.Client, path string) {
	tb.Helper()
	for {
		line, err := lock.Inspect(tb.Context(), client, path)
		if err != nil {
			tb.Fatal(err)
		}
		if slices.ContainsFunc(line, func(c lock.Contender) bool { return !c.Holder }) {
			return
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // real: until the contender's request has come
	}
}
