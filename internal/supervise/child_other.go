//go:build unix && !linux

package cli

import "syscall"

// dieWithParent does nothing: this system has no such thing.
func dieWithParent(*syscall.SysProcAttr) {}

// groupLives reports whether a process of the group has not ended, as far as this system tells.
func groupLives(int) bool { return true }
