// Package lincheck checks histories of locks, elections and queues against their models. Many clients in many
// processes of one machine record a history, and porcupine checks it.
package lincheck

// Holds as their holders saw them.

import (
	"math"

	"github.com/anishathalye/porcupine"
)

// Hold is one hold as its holder saw it. Times are nanoseconds of a clock that all processes of the machine share.
type Hold struct {
	Client  int    // the holder; every client has a number of its own
	Node    string // identifies the hold for readers of the report
	Session int64  `json:",omitempty"` // of the holder
	Token   int64
	Asked   int64 // before the call
	Got     int64 // after the call
	Alive   int64 // when its context was last seen alive
	Ended   int64 // when it was first seen ended, or was released; 0 if the holder was killed first

	Shared  bool  `json:",omitempty"` // whether it began as a reader's
	Permits int64 `json:",omitempty"` // of a semaphore

	Changes []Change `json:",omitempty"` // upgrades and downgrades, in order
	Nested  []Nested `json:",omitempty"` // after the changes

	Lost string `json:",omitempty"` // why it ended although its session lived: see LostRevoked
}

// Change is an upgrade or a downgrade that succeeded.
type Change struct {
	Shared bool  `json:",omitempty"` // whether it is a reader's afterwards
	Token  int64 // afterwards
	Asked  int64 // before the call
	Done   int64 // after the call, with the hold still alive
}

// begin returns the interval in which the hold began. It is an instant, because a hold is promised to be undisputed
// from the moment at which Lock returns.
func (h Hold) begin() (call, ret int64) { return h.Got - 1, h.Got }

// end returns the interval in which the hold ended: after its context was last seen alive, and before it was seen
// ended. The hold of a killed holder may have ended at any time after that.
func (h Hold) end() (call, ret int64) {
	ret = h.Ended
	if ret == 0 {
		ret = math.MaxInt64
	}
	alive := max(h.alive(), h.Got+1)
	return alive, max(ret, alive+1)
}

// ops returns the hold as operations of a history: acquire when it begins, the changes while it lasts, and release
// when it ends.
func (h Hold) ops(acquire any, changes []any, release any) holdOps {
	var s holdOps
	add := func(input any, call, ret int64) {
		s = append(s, porcupine.Operation{ClientId: h.Client, Input: input, Call: call, Return: ret})
	}
	call, ret := h.begin()
	add(acquire, call, ret)
	for i, c := range changes {
		add(c, h.Changes[i].Asked, h.Changes[i].Done)
	}
	call, ret = h.end()
	add(release, call, ret)
	return s
}
