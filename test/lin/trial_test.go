//go:build unix

package lin_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// trial is what epochs try: locks, queues or counters.
type trial interface {
	// places are the names of the locks or queues. Faults are aimed at clients that are busy there.
	places() []string
	// prepare creates, below the epoch's root, what workers need.
	prepare(e *epoch, sess *zk.Session) error
	// instruct completes the orders of a worker.
	instruct(o *orders)
	// newJournal returns an empty journal.
	newJournal() journal
	// settle is called when the faults are over and all workers have finished, but their sessions are still there. It
	// checks that nothing is left behind.
	settle(e *epoch, sess *zk.Session) error
}

// clock is the clock of journals.
var clock = peer.Clock

// journal is what the workers of an epoch reported.
type journal interface {
	note(r report)
	// busy returns the number and the session of a client that is known to have something in a place.
	busy(place string) (number int, session int64, known bool)
	// count returns how much was reported.
	count() string
	// judge returns nil if the reports keep the promises. Otherwise it keeps the history in dir.
	judge(dir string) error
}

// keepHistory writes everything reported of a place into dir, for programs. People read the page.
func keepHistory(dir string, history any) {
	if raw, err := json.Marshal(history); err == nil && os.MkdirAll(dir, 0o755) == nil {
		_ = os.WriteFile(filepath.Join(dir, "history.json"), raw, 0o600)
	}
}

// jobs are what workers can be told to do, by orders.Job. A client starts its goroutines, which finish some time
// after ctx ends.
var jobs = map[string]func(ctx context.Context, w *worker, wg *sync.WaitGroup, client *zk.Client, i int) error{
	lockJob:  useLocks,
	queueJob: useQueues,
	cacheJob: useCaches,

	counterJob: useCounters,
	memberJob:  useMembers,
	barrierJob: useBarriers,

	racyJob:  race,
	shortJob: endEarly,
	idleJob:  idle,
}
