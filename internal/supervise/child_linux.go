package cli

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dieWithParent has the process get SIGTERM when the thread that starts it dies.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// groupLives reports whether a process of the group has not ended. To the kernel a group also has those that have
// ended and that nobody has waited for; an init that is in no hurry, as containers have it, leaves them for long.
func groupLives(group int) bool {
	dir, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return true
	}
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it is gone
		}
		// PID (NAME) STATE PARENT GROUP ..., and a name may have anything in it
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return true
		}
	}
	return false
}
