package peer

// Children that end with the test.

import "syscall"

// dieWithParent makes the kernel kill the child when the test ends without cleaning up.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
