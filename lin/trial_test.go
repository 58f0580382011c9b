//go:build unix

package lin_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// trial is what epochs try: locks, or queues.
type trial interface {
	// places are the names of what is tried. Faults are aimed at whoever is busy there.
	places() []string
	// prepare makes below the epoch's root what must be there before anybody starts.
	prepare(e *epoch, sess *zk.Session) error
	// instruct completes the orders of a worker.
	instruct(o *orders)
	// newJournal returns an empty journal.
	newJournal() journal
	// settle is called when the faults are over and all workers have come to rest, and their sessions are still there. It sees that nothing
	// is left behind.
	settle(e *epoch, sess *zk.Session) error
}

// journal is what the workers of an epoch have seen.
type journal interface {
	note(r report)
	// busy returns the number and the session of whoever is known to have something in a place just now.
	busy(place string) (number int, session int64, known bool)
	// count says how much was seen.
	count() string
	// judge returns nil if what was seen is what is promised. Otherwise it keeps it in dir.
	judge(dir string) error
}

// keepHistory writes all that was seen in a place into dir, for programs; the page is what matters.
func keepHistory(dir string, history any) {
	if raw, err := json.Marshal(history); err == nil && os.MkdirAll(dir, 0o755) == nil {
		_ = os.WriteFile(filepath.Join(dir, "history.json"), raw, 0o600)
	}
}

// jobs are what workers can be told to do, by orders.Job: a client starts its goroutines, which come to an end some time after ctx does.
var jobs = map[string]func(ctx context.Context, w *worker, wg *sync.WaitGroup, client *zk.Client, i int) error{
	lockJob:  useLocks,
	queueJob: useQueues,
}
