//go:build !linux

package main

import "syscall"

// dieWithParent does nothing: only Linux can end a server together with the benchmark.
func dieWithParent() *syscall.SysProcAttr { return nil }
