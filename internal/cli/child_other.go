//go:build unix && !linux

package cli

import "syscall"

// dieWithParent does nothing: this system has no such thing.
func dieWithParent(*syscall.SysProcAttr) {}
