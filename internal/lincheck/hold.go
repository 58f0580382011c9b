// Package lincheck judges histories of holds: whether one lock could have behaved so. Histories are recorded by many clients, in many
// processes on one machine, and judged by porcupine.
package lincheck

import (
	"math"

	"github.com/anishathalye/porcupine"
)

// Hold is what one holder saw. Times are nanoseconds of a clock that all processes of the machine share.
type Hold struct {
	Client  int    // who held; no two clients have the same number
	Node    string // whatever tells this hold from others, for people
	Session int64  `json:",omitempty"` // the holder's
	Token   int64
	Asked   int64 // before it was asked for
	Got     int64 // when it had been given
	Alive   int64 // when its context was last seen alive
	Ended   int64 // when it was first seen ended or was given up; 0 if nobody lived to see it

	Shared  bool  `json:",omitempty"` // a reader's, when it began
	Permits int64 `json:",omitempty"` // of a semaphore

	Changes []Change `json:",omitempty"` // upgrades and downgrades, in their order
	Nested  []Nested `json:",omitempty"` // after the changes

	Lost string `json:",omitempty"` // why it ended by itself although its session lived: see LostRevoked
}

// Change is an upgrade or a downgrade that a hold lived through.
type Change struct {
	Shared bool  `json:",omitempty"` // a reader's afterwards
	Token  int64 // afterwards
	Asked  int64 // before it was called
	Done   int64 // when it had returned, and the hold was still alive
}

// begin returns the interval in which the hold began. It is an instant: that a hold is undisputed is promised from the moment at which
// its owner has it.
func (h Hold) begin() (call, ret int64) { return h.Got - 1, h.Got }

// end returns the interval in which the hold ended: after its context was last seen alive, and before it was seen ended. That of a
// holder which was killed may have ended at any time after that.
func (h Hold) end() (call, ret int64) {
	ret = h.Ended
	if ret == 0 {
		ret = math.MaxInt64
	}
	alive := max(h.alive(), h.Got+1)
	return alive, max(ret, alive+1)
}

// story makes a story in which take is done when the hold begins, the changes while it lasts, and leave when it ends.
func (h Hold) story(take any, changes []any, leave any) story {
	var s story
	add := func(input any, call, ret int64) {
		s = append(s, porcupine.Operation{ClientId: h.Client, Input: input, Call: call, Return: ret})
	}
	call, ret := h.begin()
	add(take, call, ret)
	for i, c := range changes {
		add(c, h.Changes[i].Asked, h.Changes[i].Done)
	}
	call, ret = h.end()
	add(leave, call, ret)
	return s
}
