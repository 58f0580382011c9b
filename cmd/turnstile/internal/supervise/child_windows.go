package supervise

// Jobs.

import (
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// osProcess is a process and the job of everything that it starts. The job ends when this process does, in any way.
type osProcess struct {
	pid int
	job windows.Handle
}

func (p *osProcess) start(cmd *exec.Cmd, _ *terminal) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	cmd.WaitDelay = time.Second // do not wait for other processes that keep the streams open
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid = cmd.Process.Pid
	p.job = newJob(p.pid)
	return nil
}

// ownSession is not needed: the process gets a group of its own, and a console is no terminal that it could stop for.
func ownSession() *syscall.SysProcAttr { return nil }

// newJob puts a process into a job that is killed when its last handle is closed. It returns 0 where that is not
// allowed; then only the process itself can be killed.
func newJob(pid int) windows.Handle {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var handle windows.Handle
		const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE
		if handle, err = windows.OpenProcess(access, false, uint32(pid)); err == nil {
			err = windows.AssignProcessToJobObject(job, handle)
			_ = windows.CloseHandle(handle)
		}
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0
	}
	return job
}

// wait returns how the process ended.
func (p *osProcess) wait(cmd *exec.Cmd, _ chan<- syscall.Signal) Ending {
	_ = cmd.Wait() // an exit code other than 0 is not an error here
	if cmd.ProcessState == nil {
		return Ending{Code: unknownCode}
	}
	return Ending{Code: cmd.ProcessState.ExitCode()}
}

// signal asks the group to end: Windows has no other message to a process.
func (p *osProcess) signal(os.Signal) {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.pid)) // does nothing without a console
}

// terminate asks the group to end.
func (p *osProcess) terminate() { p.signal(os.Interrupt) }

func (p *osProcess) kill() {
	if p.job != 0 {
		_ = windows.TerminateJobObject(p.job, signalCode+9)
		return
	}
	if proc, err := os.FindProcess(p.pid); err == nil {
		_ = proc.Kill() // it may have ended
	}
}

// killGroup kills what is left of the job of a process that has ended.
func (p *osProcess) killGroup(time.Time) { p.kill() }

// groupEnded reports true: what is left of the job ends with this process.
func (p *osProcess) groupEnded(time.Time) bool { return true }
