package cli

// How a holder in the background is asked to unlock.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
)

// holderFlag is the flag of the process that holds a lock for another one.
const holderFlag = "holder"

// errUnlocked is the cause of a wait that turnstile unlock has ended.
var errUnlocked = errors.New("it was unlocked meanwhile")

// unlocked is what a holder answers when it has unlocked.
const unlocked = "unlocked\n"

// door is the socket at which a holder is asked to unlock. It is in a directory of this user, and answers only as long
// as the holder lives: a holder that was killed cannot be mistaken for another process.
type door struct {
	listener net.Listener
	asked    chan struct{} // closed at the first request to unlock

	mu    sync.Mutex // guards conns
	conns []net.Conn // of those who ask
}

// doorDirs returns the directories that the socket of a holder may be in, the preferred one first. A script may set
// HOME and XDG_STATE_HOME after turnstile lock, or run turnstile unlock with others, so the directory must depend on
// the user alone: it is under /tmp. There another user can make it first, which is no reason to fail: then it is in
// the state directory.
func doorDirs(env map[string]string) []string {
	dirs := []string{ownserver.TempDir()}
	if dir, err := ownserver.StateDir(env); err == nil {
		dirs = append(dirs, filepath.Join(dir, "holders"))
	}
	return dirs
}

// doorIn returns the socket in a directory of the holder of these paths, in any order, for a process.
func doorIn(dir string, pid int, paths []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(paths)), "\n")))
	return filepath.Join(dir, fmt.Sprintf("%d-%s.sock", pid, hex.EncodeToString(sum[:8])))
}

// openDoor makes the socket. It returns an error if another holder has it.
func openDoor(ctx context.Context, env map[string]string, pid int, paths []string) (*door, error) {
	held := func(err error) error {
		return &command.Error{
			Code: command.ExitUsage, Err: fmt.Errorf("%s: --pid %d: %w", strings.Join(paths, " "), pid, err),
		}
	}
	for _, dir := range doorDirs(env) { // the holder may have found another place than we shall
		if !ownserver.Ours(dir) {
			continue
		}
		if conn, err := dialDoor(ctx, doorIn(dir, pid, paths)); err == nil {
			_ = conn.Close()
			return nil, held(errHeld)
		}
	}
	var errs []error
	for _, dir := range doorDirs(env) {
		if err := ownserver.PrivateDir(dir); err != nil {
			errs = append(errs, err)
			continue
		}
		listener, err := listenAtDoor(ctx, doorIn(dir, pid, paths))
		if errors.Is(err, errHeld) {
			return nil, held(err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d := &door{listener: listener, asked: make(chan struct{})}
		go d.serve() // ends with the process
		return d, nil
	}
	return nil, &command.Error{
		Code: command.ExitUsage,
		Err:  fmt.Errorf("no place for the socket of turnstile unlock: %w", errors.Join(errs...)),
		Hint: "set XDG_STATE_HOME to a directory of yours with a short path",
	}
}

// listenAtDoor makes the socket, and removes those of holders that were killed. Only one holder does so at a time: a
// socket that is bound, and not listened at yet, looks like that of one that was killed.
func listenAtDoor(ctx context.Context, socket string) (net.Listener, error) {
	dir := filepath.Dir(socket)
	unlock, err := ownserver.LockFile(ctx, filepath.Join(dir, "holders.lock"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }() // the file was not written to
	if names, err := filepath.Glob(filepath.Join(dir, "*-*.sock")); err == nil {
		for _, name := range names {
			_ = removeDead(ctx, name)
		}
	}
	if err := removeDead(ctx, socket); err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "unix", socket)
}

// errHeld means that another holder answers at the socket.
var errHeld = errors.New("it is held for that process already, or waited for")

// removeDead removes a socket if its holder was killed. It returns an error if the holder lives.
func removeDead(ctx context.Context, socket string) error {
	conn, err := dialDoor(ctx, socket)
	switch {
	case err == nil:
		_ = conn.Close()
		return errHeld
	case refused(err):
		_ = os.Remove(socket) // if it fails, no other can be made
	}
	return nil
}

func dialDoor(ctx context.Context, socket string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: time.Second}
	return dialer.DialContext(ctx, "unix", socket)
}

// serve waits for those who ask. A connection that closes without a word was a sweep's.
func (d *door) serve() {
	var once sync.Once
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			if n, _ := conn.Read(make([]byte, 1)); n == 0 {
				_ = conn.Close()
				return
			}
			d.mu.Lock()
			d.conns = append(d.conns, conn)
			d.mu.Unlock()
			once.Do(func() { close(d.asked) })
		}()
	}
}

// close answers those who have asked. The hold has been given back.
func (d *door) close() {
	_ = d.listener.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		_, _ = io.WriteString(conn, unlocked) // who asked may have gone
		_ = conn.Close()
	}
}

// askToUnlock asks the holder of these paths for a process to unlock, and returns when it has. It reports false if
// there is no such holder.
func askToUnlock(ctx context.Context, env map[string]string, pid int, paths []string) (held bool, err error) {
	for _, dir := range doorDirs(env) {
		if !ownserver.Ours(dir) { // nor is what answers there a holder
			continue
		}
		conn, err := dialDoor(ctx, doorIn(dir, pid, paths))
		if errors.Is(err, os.ErrNotExist) || refused(err) {
			continue
		}
		if err != nil {
			return held, err
		}
		if err := askBehind(ctx, conn); err != nil {
			return true, err
		}
		held = true
	}
	return held, nil
}

// askBehind asks the holder at the other end of a connection, and closes that.
func askBehind(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the read
	defer stop()
	if _, err := conn.Write([]byte{1}); err != nil {
		return fmt.Errorf("the process that holds the lock has ended: %w", err)
	}
	answer, err := io.ReadAll(conn)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case string(answer) != unlocked:
		return errors.Join(errors.New("the process that holds the lock has ended without an answer"), err)
	}
	return nil
}
