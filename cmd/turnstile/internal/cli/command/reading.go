package command

// Reads that no context reaches.

import "context"

// Reading returns what f returns, which reads standard input, or a file that may be a pipe. When ctx ends it returns
// the cause without waiting for f: such a read cannot be interrupted, and the process ends soon after us.
func Reading[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
