//go:build !plantedbug

package line

// inferred is what a waiter concludes from the leaving of the seat ahead about those further ahead: nothing, so it looks.
const inferred = false
