//go:build !linux

package peer

// Systems on which a child cannot be tied to its parent.

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
