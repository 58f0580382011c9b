package cli

import (
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// process is a process and the job of all that it starts. The job ends with us, however we end.
type process struct {
	pid int
	job windows.Handle
}

func (p *process) start(cmd *exec.Cmd, _ *terminal) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	cmd.WaitDelay = time.Second // for streams that are not files: what else holds them open does not hold us
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid = cmd.Process.Pid
	p.job = newJob(p.pid)
	return nil
}

// newJob puts a process into a job that is killed when its last handle is closed. Where that is not allowed the job is 0, and only the
// process itself can be killed.
func newJob(pid int) windows.Handle {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var handle windows.Handle
		if handle, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid)); err == nil {
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

// wait returns the exit code when the process has ended.
func (p *process) wait(cmd *exec.Cmd, _ chan<- syscall.Signal) (code int, sig syscall.Signal) {
	_ = cmd.Wait() // an exit code is no error here
	if cmd.ProcessState == nil {
		return ExitSoftware, 0
	}
	return cmd.ProcessState.ExitCode(), 0
}

// signal asks the group to end: Windows knows no other message to a process.
func (p *process) signal(os.Signal) {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.pid)) // without a console there is nobody to tell
}

// terminate asks the group to end.
func (p *process) terminate() { p.signal(os.Interrupt) }

func (p *process) kill() {
	if p.job != 0 {
		_ = windows.TerminateJobObject(p.job, ExitSignal+9)
		return
	}
	if proc, err := os.FindProcess(p.pid); err == nil {
		_ = proc.Kill() // it may be gone
	}
}

// gone reports true: what is left of the job ends with us.
func (p *process) gone(time.Time) bool { return true }

// clear kills what is left of the job of a process that has ended.
func (p *process) clear(time.Time) { p.kill() }
