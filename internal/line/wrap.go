package line

// Sequence numbers at their end.

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// ErrWrap says that a line's path has nearly used up its sequence numbers, which end at 2147483647. Errors that wrap it
// name the path and say what to do.
var ErrWrap = errors.New("sequence numbers used up")

// nearWrap is how many numbers before 2147483647 we stop.
const nearWrap = 1 << 20

// firstRefused is the smallest number that no contender of ours keeps; it keeps no larger one and no negative one
// either.
const firstRefused = math.MaxInt32 - nearWrap

// HalfLeft is how many numbers are left when 2^30 are used.
const HalfLeft = firstRefused - 1<<30

// ordered reports whether the number says when its contender came.
//
// Behind 2147483647 it does not, and servers differ there. ZooKeeper (3.8.0 was tried) stores a counter only if it is
// larger than the one before. So it stays at 2147483647, and all nodes that follow have that number, or a small
// negative one where several are created at once; the random part of a name would decide who is first, and a contender
// that has just come could be ahead of the holder. Our own server goes on from -2147483648, where Curator and kazoo,
// which compare the text of numbers, see another order than we do.
//
// So a contender of ours with such a number leaves at once, and never holds anything. Those that stay have numbers from
// 0 to firstRefused-1. Every server gives out each of these once, in the order of creation, until its counter has gone
// through all negative numbers. Hence of two that stay, the one that came first has the smaller number, and those that
// were there before the end keep their order, whatever comes behind them.
//
// That would be true with any margin that leaves room for the second node of a contender, which has the next number.
// The rest of nearWrap is for contenders of Curator's and kazoo's, which do not stop. A contender of ours meets one of
// theirs from behind the end only if it stays in the line while a million others come.
func ordered(number int32) bool { return number >= 0 && number < firstRefused }

// checkNumber returns an error that wraps ErrWrap if our contender must not keep its number.
func (l *Line) checkNumber(number int32) error {
	if l.Unordered || ordered(number) {
		return nil
	}
	return fmt.Errorf("%w at %s (%d of %d): delete %s once it has no children, so that they begin at 0 again; "+
		"if it cannot be emptied, move all contenders to another path at the same time",
		ErrWrap, l.Dir, number, math.MaxInt32, l.Dir)
}

// NumbersLeft returns how many more nodes contenders can make at a path before they get ErrWrap, going by its children
// and its Stat.
func NumbersLeft(contenders []Contender, stat zk.Stat) int {
	if slices.ContainsFunc(contenders, func(s Contender) bool { return !ordered(s.Seq) }) {
		return 0
	}
	// The Stat has twice the counter, less the number of children, in 32 bits: that is all of a counter that is not
	// negative.
	next := int(uint32(stat.Cversion+stat.NumChildren) >> 1)
	return max(0, firstRefused-next)
}
