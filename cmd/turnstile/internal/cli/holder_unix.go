//go:build unix

package cli

// turnstile lock --pid: a process in the background that holds the lock for another one.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
)

// The holder and the turnstile that starts it agree over a socket pair that is the holder's descriptor 3: the holder
// writes a byte when it has the lock, and holds it on only if it gets one back. So a turnstile that is interrupted or
// killed while it waits never leaves a holder behind.
const agreementFD = 3

var (
	errProcessEnded = errors.New("the process to hold it for has ended")
	errCalledOff    = errors.New("the turnstile that waits for the lock has ended")
)

// noProcess is the error of a process that a lock cannot be held for.
func (l *locker) noProcess(err error) error {
	switch {
	case errors.Is(err, os.ErrProcessDone), errors.Is(err, syscall.ESRCH):
		err = errors.New("no such process")
	case errors.Is(err, os.ErrPermission):
		err = errors.New("it belongs to another user")
	}
	return &command.Error{Code: command.ExitUsage, Err: fmt.Errorf("--pid %d: %w", l.forPID, err)}
}

// startHolder starts the holder, and returns when it holds the lock, or has ended because it does not get it.
func (l *locker) startHolder(ctx context.Context) error {
	process, err := supervise.Watch(l.forPID)
	if err != nil {
		return l.noProcess(err)
	}
	exe, err := ownserver.Executable()
	if err != nil {
		return command.Failed(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return command.Failed(err)
	}
	for _, fd := range pair {
		unix.CloseOnExec(fd)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "agreement"), os.NewFile(uintptr(pair[1]), "agreement")
	defer ours.Close()
	until, stop := supervise.Until(ctx)
	defer stop()
	cmd := &exec.Cmd{
		Path: exe, Args: append(append([]string{"turnstile"}, l.app.Args...), "--"+holderFlag), Env: l.app.Env.List,
		Stdout: l.app.Stdout, Stderr: l.app.Stderr, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // Ctrl-C is for the script, whose end the holder sees
	}
	err = cmd.Start()
	_ = theirs.Close() // the holder has its own
	if err != nil {
		return command.Failed(err)
	}
	agreed := make(chan bool, 1)
	go func() {
		n, _ := ours.Read(make([]byte, 1)) // nothing comes if the holder ends
		agreed <- n == 1
	}()
	select {
	case <-until.Done():
		_ = unix.Shutdown(pair[0], unix.SHUT_RDWR) // calls it off, and ends the read
		<-agreed
		_ = cmd.Wait() // nothing is held any more
		return command.Failed(supervise.AsSignal(context.Cause(until)))
	case held := <-agreed:
		if held {
			return l.agree(ours, cmd, process)
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return &command.Error{Code: exit.ExitCode()} // it has said why
	}
	return &command.Error{Code: command.ExitSoftware, Err: fmt.Errorf("the process that holds the lock: %w", err)}
}

// agree tells the holder to hold the lock on. The process must still be there: if the holder has found another one
// with the same id, it was not.
func (l *locker) agree(agreement io.Writer, cmd *exec.Cmd, process *supervise.Other) error {
	select {
	case <-process.Ended():
		return l.noProcess(os.ErrProcessDone) // our end calls it off
	default:
	}
	if _, err := agreement.Write([]byte{1}); err != nil {
		return &command.Error{Code: command.ExitSoftware, Err: fmt.Errorf("the process that holds the lock: %w", err)}
	}
	return command.Failed(cmd.Process.Release())
}

// holdForProcess is the holder: it waits for the lock, and holds it until the process has ended or until it is asked
// to unlock.
func (l *locker) holdForProcess(ctx context.Context) error {
	agreement := os.NewFile(agreementFD, "agreement")
	unix.CloseOnExec(agreementFD)
	if err := ownserver.CloseInherited(); err != nil {
		return command.Failed(err)
	}
	process, err := supervise.Watch(l.forPID)
	if err != nil {
		return l.noProcess(err)
	}
	door, err := openDoor(ctx, l.app.Env.Vars, l.forPID, l.run.Paths)
	if err != nil {
		return err
	}
	defer door.close()
	err = l.holdBehind(ctx, door, process, agreement)
	// It is said before those are answered who have asked: they may read it then.
	if exit, ok := errors.AsType[*command.Error](err); ok {
		complain(l.app, exit)
		said := *exit
		said.Err = nil
		return &said
	}
	return err
}

// holdBehind is holdForProcess behind a door that is open.
func (l *locker) holdBehind(ctx context.Context, door *door, process *supervise.Other, agreement *os.File) error {
	signals := supervise.Catch()
	defer l.app.Release(signals)
	until, stop := signals.Until(ctx)
	wanted, cancel := context.WithCancelCause(until)
	defer cancel(nil)
	agreed := make(chan bool, 1)
	go func() { // ends with us
		n, _ := agreement.Read(make([]byte, 1))
		if n != 1 {
			cancel(errCalledOff)
		}
		agreed <- n == 1
	}()
	go func() { // ends with us
		select {
		case <-process.Ended():
			cancel(errProcessEnded)
		case <-door.asked:
			cancel(errUnlocked)
		}
	}()
	client, hold, err := l.acquire(wanted)
	stop()
	if client != nil {
		defer client.Close() // if it fails, the session ends by itself
	}
	switch cause := context.Cause(wanted); {
	case errors.Is(cause, errCalledOff):
		return &command.Error{Code: command.ExitNotAcquired} // the turnstile that would show a message has ended
	case errors.Is(cause, errUnlocked), errors.Is(cause, errProcessEnded):
		return &command.Error{Code: command.ExitNotAcquired, Err: fmt.Errorf("%s: not acquired: %w", l.run.Path, cause)}
	}
	if err := interrupted(ctx, wanted, err); err != nil {
		return command.Failed(err)
	}
	h := command.Hold{Held: hold, Release: hold.Unlock, ReleaseWait: hold.UnlockWait}
	if err := l.announce(h); err != nil {
		return command.Failed(errors.Join(err, h.GiveBack(context.WithoutCancel(ctx))))
	}
	if err := leaveStreams(); err != nil {
		return command.Failed(errors.Join(err, h.GiveBack(context.WithoutCancel(ctx))))
	}
	if _, err := agreement.Write([]byte{1}); err != nil || !<-agreed {
		return command.Failed(errors.Join(errCalledOff, h.GiveBack(context.WithoutCancel(ctx))))
	}
	p := supervise.Attach(process, l.run.Command("", h), command.Under(h), signals, door.asked)
	if result := l.run.Await(ctx, h, p, time.Now()); result.Lost != nil {
		return l.run.LostError(result.Lost)
	}
	return nil
}

// leaveStreams lets go of standard output and, unless it is a terminal or a file, of standard error. Otherwise what
// reads the other end of a pipe, such as $(...), would wait until the lock is unlocked.
func leaveStreams() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	streams := []*os.File{os.Stdin, os.Stdout}
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		streams = append(streams, os.Stderr)
	}
	for _, stream := range streams {
		if err := unix.Dup2(int(null.Fd()), int(stream.Fd())); err != nil {
			return err
		}
	}
	return nil
}
