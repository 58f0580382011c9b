package main

import "syscall"

// dieWithParent makes the kernel kill a server when the benchmark dies without cleaning up.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
