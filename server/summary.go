package server

// Quantiles of what has been measured lately.

import (
	"math/bits"
	"time"
)

const (
	summarySteps  = 8               // classes for each power of two: a quantile is at most an eighth too large
	summaryPeriod = 5 * time.Minute // quantiles are of the last one or two of these
)

// summary counts values of a kind, and knows the quantiles of the recent ones. Its owner guards it.
type summary struct {
	n, sum int64
	powers [65]int64 // how many values have each number of bits
	began  time.Time // of the present period
	recent [2]classes
}

// classes count values by size.
type classes [64 * summarySteps]int64

// add counts a value that is not negative: microseconds, or a number of things.
func (s *summary) add(v int64) { s.addTimes(v, 1) }

// addTimes counts a value n times.
func (s *summary) addTimes(v, n int64) {
	v = max(v, 0)
	s.n += n
	s.sum += v * n
	s.powers[bits.Len64(uint64(v))] += n
	s.recent[0][class(v)] += n
}

// class returns the class of a value: its highest bit and the next three.
func class(v int64) int {
	if v < summarySteps {
		return int(v)
	}
	high := bits.Len64(uint64(v)) - 1
	return (high-2)*summarySteps + int(v>>(high-3))&(summarySteps-1)
}

// top returns the largest value of a class.
func top(class int) int64 {
	if class < summarySteps {
		return int64(class)
	}
	high := class/summarySteps + 2
	return int64(summarySteps+class%summarySteps+1)<<(high-3) - 1
}

// turn begins another period if the present one has lasted long enough.
func (s *summary) turn(now time.Time) {
	switch past := now.Sub(s.began); {
	case past < summaryPeriod:
	case past < 2*summaryPeriod:
		s.recent[1], s.recent[0], s.began = s.recent[0], classes{}, now
	default: // nothing has asked for so long
		s.recent[1], s.recent[0], s.began = classes{}, classes{}, now
	}
}

// quantile returns the value below which the part q of the recent values is; false if there are none.
func (s *summary) quantile(q float64) (int64, bool) {
	total := int64(0)
	for i := range s.recent[0] {
		total += s.recent[0][i] + s.recent[1][i]
	}
	if total == 0 {
		return 0, false
	}
	rank := max(1, int64(q*float64(total)+0.5))
	for i := range s.recent[0] {
		if rank -= s.recent[0][i] + s.recent[1][i]; rank <= 0 {
			return top(i), true
		}
	}
	return 0, false
}
