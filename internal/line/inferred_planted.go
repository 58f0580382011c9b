//go:build plantedbug

package line

// inferred is a bug: when the connection breaks, a waiter takes the seat ahead for gone and itself for first, instead of looking. It is
// planted for package lin, which builds with this tag to show that its judges find two holders; nothing else does.
const inferred = true
