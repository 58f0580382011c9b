package cli

import "syscall"

// dieWithParent has the process get SIGTERM when the thread that starts it dies.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
