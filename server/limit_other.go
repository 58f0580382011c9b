//go:build !unix

package server

// fileLimit returns -1, for unknown.
func fileLimit() int64 { return -1 }
