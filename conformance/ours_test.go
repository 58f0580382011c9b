package conformance_test

import "testing"

func ours(t *testing.T, _ string) []*target {
	t.Helper()
	return nil
}
