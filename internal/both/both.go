// Package both joins functions that hooks are made of.
package both

// One returns a function that calls f and then g. A nil function is left out, and the result is nil if both are.
func One[A any](f, g func(A)) func(A) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	default:
		return func(a A) { f(a); g(a) }
	}
}

// Two is One for functions with two arguments.
func Two[A, B any](f, g func(A, B)) func(A, B) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	default:
		return func(a A, b B) { f(a, b); g(a, b) }
	}
}

// Three is One for functions with three arguments.
func Three[A, B, C any](f, g func(A, B, C)) func(A, B, C) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	default:
		return func(a A, b B, c C) { f(a, b, c); g(a, b, c) }
	}
}
