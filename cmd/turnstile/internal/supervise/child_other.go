//go:build unix && !linux

package supervise

// Systems without a signal at the parent's end.

import "syscall"

// dieWithParent does nothing: this system cannot signal a process when its parent dies.
func dieWithParent(*syscall.SysProcAttr) {}

// groupLives reports whether a process of the group is still running. This system does not tell zombies apart.
func groupLives(int) bool { return true }
