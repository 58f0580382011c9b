// Package house tests the repository itself: which packages may import which, that pages name only what exists, that
// docs/architecture.md lists every file, and that no line is too long.
package house
