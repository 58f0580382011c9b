package attempt

// Callers' functions that do not return.

// Repanic goes on with a panic that was recovered, if there was one. Deferred functions that clean up after a function
// of the caller's that leaves by runtime.Goexit begin with it: before a crash nothing of ours may wait, or call more of
// the caller's functions.
func Repanic(recovered any) {
	if recovered != nil {
		panic(recovered)
	}
}
