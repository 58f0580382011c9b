// Package house tests the repository itself: which packages may import which, that pages name only what exists and are
// short, that each file says what it is about, and that no line is too long.
package house
