//go:build !unix

package server

// The limit of open files, which other systems do not have.

// fileLimit returns -1, for unknown.
func fileLimit() int64 { return -1 }
