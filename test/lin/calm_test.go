//go:build unix

package lin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// calmDown ends all faults, waits until all workers have finished, and checks the result.
func (e *epoch) calmDown(sess *zk.Session) error {
	for _, l := range e.links {
		l.Control(nil)
		l.Heal()
	}
	for _, p := range e.team {
		p.signal(syscall.SIGCONT)
		p.calmDown()
	}
	var trouble []error
	for _, p := range e.team {
		if err := p.awaitCalm(e.patience); err != nil {
			trouble = append(trouble, err)
			e.keepServers()
			p.dump()
		}
	}
	if len(trouble) == 0 { // the sessions are still there, so their nodes did not disappear with them
		if err := e.trial.settle(e, sess); err != nil {
			trouble = append(trouble, err)
			e.keepServers()
		}
	}
	for _, p := range e.team {
		if err := p.end(); err != nil && (len(trouble) == 0 || errors.Is(err, errRace)) {
			e.failed = append(e.failed, err)
		}
	}
	return errors.Join(trouble...)
}

// keepServers records what the servers know of workers that have not finished.
func (e *epoch) keepServers() {
	var text strings.Builder
	left, err := e.ephemerals(e.t.Context(), e.root)
	fmt.Fprintf(&text, "left: %v\n%s\n", err, strings.Join(left, "\n"))
	for i := 0; e.ensemble != nil && i < e.ensemble.Len(); i++ {
		for _, word := range []string{"srvr", "cons", "dump", "wchp"} {
			answer, err := e.ensemble.Word(i, word)
			fmt.Fprintf(&text, "\n== server %d, %s (%v)\n%s", i, word, err, answer)
		}
	}
	// The failure itself is reported.
	_ = os.WriteFile(filepath.Join(e.dir, "servers.txt"), []byte(text.String()), 0o600)
}

// noOrphans waits until there is no ephemeral node below a path. Nodes of sessions whose processes were killed, or
// lost them, disappear when these expire. A node that is there long afterwards is an orphan.
func (e *epoch) noOrphans(path string) error {
	ctx, cancel := context.WithTimeout(e.t.Context(), e.patience)
	defer cancel()
	for {
		left, err := e.ephemerals(ctx, path)
		if err == nil && len(left) == 0 {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return errors.Join(fmt.Errorf("got ephemeral nodes %v, %v after the last worker finished", left,
				e.patience), err)
		}
	}
}

// ephemerals returns the ephemeral nodes below a path. It takes the client's present session: a server that restarts
// with a low limit on timeouts may have ended the one before.
func (e *epoch) ephemerals(ctx context.Context, path string) ([]string, error) {
	sess, err := e.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	return peer.Ephemerals(ctx, sess, path)
}

// unlessStuck returns a context for work that may take long on a busy machine. It ends when moved has not been called
// for as long as the epoch has patience, with a cause that begins with what. The caller calls stop at the end.
func (e *epoch) unlessStuck(what string) (ctx context.Context, moved, stop func()) {
	ctx, cancel := context.WithCancelCause(e.t.Context())
	stuck := time.AfterFunc(e.patience, func() { cancel(fmt.Errorf("%s for %v", what, e.patience)) })
	return ctx, func() { stuck.Reset(e.patience) }, func() {
		stuck.Stop()
		cancel(nil)
	}
}

// unbroken calls f until the connection does not break under it: the servers may still be finding each other.
func unbroken(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, zk.ErrConnectionLost) || !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}
