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

// doorOf returns the socket of the holder of these paths, in any order, for a process.
func doorOf(env map[string]string, pid int, paths []string) (string, error) {
	dir, err := ownserver.StateDir(env)
	if err != nil {
		return "", &command.Error{
			Code: command.ExitUsage, Err: errors.New("there is no place for the socket of turnstile unlock"),
			Hint: "set HOME or XDG_STATE_HOME to a directory of yours",
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(paths)), "\n")))
	name := fmt.Sprintf("%d-%s.sock", pid, hex.EncodeToString(sum[:8]))
	return ownserver.SocketIn(filepath.Join(dir, "holders"), name), nil
}

// openDoor makes the socket. It returns an error if another holder has it.
func openDoor(ctx context.Context, env map[string]string, pid int, paths []string) (*door, error) {
	socket, err := doorOf(env, pid, paths)
	if err != nil {
		return nil, err
	}
	if err := ownserver.PrivateDir(filepath.Dir(socket)); err != nil {
		return nil, &command.Error{
			Code: command.ExitUsage, Err: fmt.Errorf("no place for the socket of turnstile unlock: %w", err),
			Hint: "set XDG_STATE_HOME to a directory of yours",
		}
	}
	listener, err := listenAtDoor(ctx, socket)
	if err != nil {
		return nil, &command.Error{
			Code: command.ExitUsage, Err: fmt.Errorf("%s: --pid %d: %w", strings.Join(paths, " "), pid, err),
		}
	}
	d := &door{listener: listener, asked: make(chan struct{})}
	go d.serve() // ends with the process
	return d, nil
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
	// The socket of a long path has another name, beside sockets that are no holders'.
	if err := removeDead(ctx, socket); err != nil {
		return nil, err
	}
	return new(net.ListenConfig).Listen(ctx, "unix", socket)
}

// removeDead removes a socket if its holder was killed. It returns an error if the holder lives.
func removeDead(ctx context.Context, socket string) error {
	conn, err := dialDoor(ctx, socket)
	switch {
	case err == nil:
		_ = conn.Close()
		return errors.New("it is held for that process already, or waited for")
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
	socket, err := doorOf(env, pid, paths)
	if err != nil {
		return false, err
	}
	conn, err := dialDoor(ctx, socket)
	if errors.Is(err, os.ErrNotExist) || refused(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the read
	defer stop()
	if _, err := conn.Write([]byte{1}); err != nil {
		return false, fmt.Errorf("the process that holds the lock has ended: %w", err)
	}
	answer, err := io.ReadAll(conn)
	switch {
	case ctx.Err() != nil:
		return true, context.Cause(ctx)
	case string(answer) != unlocked:
		return true, errors.Join(errors.New("the process that holds the lock has ended without an answer"), err)
	}
	return true, nil
}
