//go:build !plantedbug

package line

// inferred is what a waiter takes for granted of the seat ahead when the connection breaks before the server has answered: nothing, so
// it looks again.
const inferred = false
