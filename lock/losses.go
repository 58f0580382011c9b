package lock

// Learning of lost holds.

import (
	"context"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// losses has the reports of those holds of an ownership that are neither released nor lost. When the ownership ends
// they are lost. They share one wait for that, which lasts as long as the ownership: to begin and to end one for each
// hold would cost more than passing a lock on in memory does.
type losses struct {
	alone bool // the ownership serves one hold

	mu    sync.Mutex // guards the fields below
	first *report
	stop  func() bool // ends the wait; nil before it begins
	ended bool        // the wait is over
}

// add adds the report of a hold.
func (l *losses) add(r *report, o *line.Ownership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.next = l.first; r.next != nil {
		r.next.previous = r
	}
	l.first = r
	switch {
	case l.ended:
		go l.end(o)
	case l.stop == nil:
		l.stop = context.AfterFunc(o.Context(), func() { l.end(o) })
	}
}

// remove removes a report, if it is there.
func (l *losses) remove(r *report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case r.previous != nil:
		r.previous.next = r.next
	case l.first == r:
		l.first = r.next
	}
	if r.next != nil {
		r.next.previous = r.previous
	}
	r.previous, r.next = nil, nil
	if l.alone {
		l.stop()
	}
}

// close ends the wait if there are no holds: the ownership is about to be released.
func (l *losses) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == nil && l.stop != nil {
		l.stop()
	}
}

// end reports the loss of the holds.
func (l *losses) end(o *line.Ownership) {
	var lost []*report
	l.mu.Lock()
	l.ended = true
	for r := l.first; r != nil; r = l.first {
		l.first, r.next, r.previous = r.next, nil, nil
		lost = append(lost, r)
	}
	l.mu.Unlock()
	for _, r := range lost {
		if r.end(o.Err(), nil, 0) {
			r.tell()
		}
	}
}
