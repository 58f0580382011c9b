package supervise

// Children that end with their parent.

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dieWithParent makes the kernel send SIGTERM to the process when the thread that starts it dies.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }

// groupLives reports whether a process of the group is still running. The kernel also counts zombies as members of
// the group, and an init that is slow to reap them, as in many containers, leaves them for a long time.
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
			continue // the process has ended
		}
		// PID (NAME) STATE PARENT GROUP ..., and NAME may contain any character
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return true
		}
	}
	return false
}
