//go:build plantedbug

package line

// inferred is a bug: whoever stood behind a seat that is gone, or that has changed, takes itself for first, without looking. It is planted for
// package lin, which builds with this tag to show that its judges find two holders; nothing else does.
const inferred = true
