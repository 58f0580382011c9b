// Package soak says how much of what they could try tests do try. With TURNSTILE_SOAK set, as make soak sets it, that
// is all. Without, it is a part in which each row and each column of a matrix still is.
package soak

import (
	"iter"
	"maps"
	"os"
	"slices"
)

// All reports whether tests try all that they can.
func All() bool { return os.Getenv("TURNSTILE_SOAK") != "" }

// Pick returns all if tests try all that they can, or else some.
func Pick[T any](some, all T) T {
	if All() {
		return all
	}
	return some
}

// Steps yields the steps of a scenario, from 1 on without end, at which the named fault is tried. Unless tests try all
// that they can, each step has one of the faults, or if there are more than eight an eighth of them.
func Steps[F any](name string, faults map[string]F) iter.Seq[int] {
	stride := min(len(faults), 8)
	turn := slices.Index(slices.Sorted(maps.Keys(faults)), name) % stride
	return func(yield func(int) bool) {
		for step := 1; ; step++ {
			if (All() || step%stride == turn) && !yield(step) {
				return
			}
		}
	}
}
