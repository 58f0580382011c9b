package zk

// Calling hooks for what a connection's reader finds out.

import (
	"context"
	"sync"
	"time"
)

// reports calls hooks on a goroutine of its own, which runs while there is something to report.
type reports struct {
	hooks *Hooks
	ctx   context.Context //nolint:containedctx // for the hooks

	mu      sync.Mutex // guards the fields below
	pending []report
	spare   []report      // replaces pending while that is worked on
	idle    chan struct{} // closed when the goroutine ends; nil if none runs
}

// A report is what one call of a hook tells.
type report struct {
	request RequestDone
	proof   *ProofDone // nil for a request
}

// add has the hook called.
func (r *reports) add(what report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, what)
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.run()
	}
}

func (r *reports) run() {
	var done []report
	for {
		r.mu.Lock()
		clear(done)
		if r.spare = done[:0]; cap(done) > keepReports {
			r.spare = nil
		}
		if done = r.pending; len(done) == 0 {
			close(r.idle)
			r.idle = nil
			r.mu.Unlock()
			return
		}
		r.pending = r.spare
		r.mu.Unlock()
		for _, what := range done {
			if what.proof != nil {
				r.hooks.Proof(*what.proof)
			} else {
				r.hooks.Request(r.ctx, what.request)
			}
		}
	}
}

// keepReports bounds the memory that is kept for the next reports.
const keepReports = 1024

// wait waits until all is reported.
func (r *reports) wait() {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// report reports the call of a future that is answered or has failed, but whose callers do not know yet.
func (c *call) report() {
	if client := c.sess.client; client.cfg.Hooks.Request != nil {
		client.reports.add(report{request: RequestDone{
			Op: opName(c.op), Path: c.path, Took: time.Since(c.made), Err: c.failure(),
		}})
	}
}

// reportProof reports the end of the proof that c is the last part of.
func (c *call) reportProof(err error) {
	if s := c.sess; s.client.cfg.Hooks.Proof != nil {
		s.client.reports.add(report{proof: &ProofDone{
			Nodes: len(c.proof.nodes), Took: s.now().Sub(c.proof.sent), Err: err,
		}})
	}
}
