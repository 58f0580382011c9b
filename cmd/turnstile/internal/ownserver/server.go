// Package ownserver finds, starts and stops the user's own embedded server on this machine: the server of commands that
// name none.
package ownserver

// Finding and starting it.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	idleExit      = "10m"               // how long the server stays without a session
	socketName    = "turnstile.sock"    // in the state directory
	maxSocketPath = len(unixPath{}) - 1 // the longest path of a unix socket that the system accepts
	retryFor      = time.Second         // how long to start the server again if it ends at once
	retryEvery    = 50 * time.Millisecond
	pollEvery     = 5 * time.Millisecond // how often to check whether the server answers, or has ended
)

// inherited are the variables that the server inherits from the process that starts it: what it needs, no secrets.
var inherited = []string{
	"HOME", "USER", "LOGNAME", "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_STATE_HOME",
	"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "GOCOVERDIR",
	"SYSTEMROOT", "LOCALAPPDATA", "USERPROFILE", "TEMP", "TMP",
}

type unixPath = [len(syscall.RawSockaddrUnix{}.Path)]byte

// CheckSockets returns an error if one of these addresses is a unix socket whose path is too long for the system.
func CheckSockets(addresses ...string) error {
	for _, address := range addresses {
		path, ok := strings.CutPrefix(strings.TrimSpace(address), "unix:")
		if path, _, _ = strings.Cut(path, "!"); ok && len(path) > maxSocketPath {
			return fmt.Errorf(
				"the path of the unix socket %s has %d bytes, but this system allows %d: choose a shorter one",
				path, len(path), maxSocketPath,
			)
		}
	}
	return nil
}

// Server is the user's own server, whether it runs or not. It serves one state directory, and every process that uses
// that directory finds it, from a login shell and from cron alike.
type Server struct {
	Started func() // called when this process has started it; may be nil

	dir    string   // the state directory: data, log, and the lock of processes that start the server
	socket string   // where it listens
	env    []string // of the server's process
	idle   string
}

// Find returns the server of the user whose environment this is.
func Find(env map[string]string) (*Server, error) {
	dir, err := StateDir(env)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, idle: env["TURNSTILE_IDLE_EXIT"]}
	if s.idle == "" {
		s.idle = idleExit
	}
	for _, name := range inherited {
		if value, ok := env[name]; ok {
			s.env = append(s.env, name+"="+value)
		}
	}
	s.socket = socketIn(dir)
	return s, nil
}

// StateDir returns this program's directory by the XDG base directory specification. It need not exist. It returns an
// error if there is no place for one, only one in a home directory that does not exist, or only one of another user's
// that root would make its own.
func StateDir(env map[string]string) (string, error) {
	dir, home, err := stateDir(env)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(home); home != "" && errors.Is(err, fs.ErrNotExist) { // what makes users makes their homes
		return "", fmt.Errorf("there is no home directory %s, and so no place for this user's own server: %s",
			home, Elsewhere)
	}
	return dir, checkHome(dir, os.Geteuid())
}

// Elsewhere says what to do if the state directory cannot be used.
const Elsewhere = "set HOME or XDG_STATE_HOME, or name a server with --connect"

// stateDir is StateDir without looking at the disk. It also returns the home directory if the directory is there.
func stateDir(env map[string]string) (dir, home string, err error) {
	if dir := env["XDG_STATE_HOME"]; filepath.IsAbs(dir) { // the specification says to ignore relative ones
		return filepath.Join(dir, "turnstile"), "", nil
	}
	if dir := env["LOCALAPPDATA"]; runtime.GOOS == "windows" && dir != "" {
		return filepath.Join(dir, "turnstile"), "", nil
	}
	home = env["HOME"]
	if home == "" { // a system service: it must find the same directory as this user's shells
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	if !filepath.IsAbs(home) {
		return "", "", errors.New("there is no place for this user's own server: " + Elsewhere)
	}
	return filepath.Join(home, ".local", "state", "turnstile"), home, nil
}

// isAddress reports whether --connect can name a socket, as Addresses promises.
func isAddress(socket string) bool {
	return len(socket) <= maxSocketPath && !strings.ContainsAny(socket, ",!")
}

// socketIn returns the path of the socket of a state directory, by whatever name that is given. A socket whose path
// would be too long, or that --connect cannot name, is in TempDir. PrivateDir makes either directory.
func socketIn(dir string) string {
	dir = resolved(dir)
	socket := filepath.Join(dir, socketName)
	if isAddress(socket) {
		return socket
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(TempDir(), hex.EncodeToString(sum[:8])+".sock")
}

// TempDir returns this user's directory under /tmp, which no variable changes: not even TMPDIR. PrivateDir makes it.
func TempDir() string {
	tmp := "/tmp"
	if runtime.GOOS == "windows" {
		tmp = os.TempDir()
	}
	return filepath.Join(tmp, fmt.Sprintf("turnstile-%d", os.Getuid()))
}

// resolved returns a directory's path without symbolic links, as far as it exists.
func resolved(dir string) string {
	if path, err := filepath.EvalSymlinks(dir); err == nil {
		return path
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return dir
	}
	return filepath.Join(resolved(parent), filepath.Base(dir))
}

// Address returns where the server listens, or would, as --connect takes it.
func (s *Server) Address() string { return "unix:" + s.socket }

// Data is the directory of the server's data.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// Log is the file of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, logName) }

// Dial connects to the server, and starts it first if it does not run, also one that has ended while we were connected:
// its sessions are in its data. It fits zk.Config.Dial.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if conn, _, err := s.connect(ctx); err == nil {
		return conn, nil
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	conn, _, err := s.connect(ctx)
	return conn, err
}

// Ensure starts the server if it does not run.
func (s *Server) Ensure(ctx context.Context) error {
	conn, err := s.Dial(ctx, "", "")
	if err != nil {
		return err
	}
	return conn.Close()
}

// start starts the server and returns when it answers. If several processes call it, one starts the server.
func (s *Server) start(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep this user's own server: %w; %s", err, Elsewhere)
	}
	if !Ours(s.dir) {
		return fmt.Errorf("%s belongs to another user: "+
			"set XDG_STATE_HOME to a directory of yours, or name a server with --connect", s.dir)
	}
	unlock, err := LockFile(ctx, filepath.Join(s.dir, "start.lock"))
	if _, unusable := errors.AsType[*fs.PathError](err); unusable {
		return fmt.Errorf("cannot keep this user's own server: %w; %s", err, Elsewhere)
	}
	if err != nil {
		return fmt.Errorf("waiting for another turnstile to start this user's own server: %w", err)
	}
	defer func() { _ = unlock() }() // the file was not written to
	if done, err := s.answers(ctx, time.Now().Add(retryFor)); done || err != nil {
		return err
	}
	return s.spawn(ctx)
}

// answers reports whether the server answers. Another server that has its socket may be just ending, so it is given
// until the deadline for that.
func (s *Server) answers(ctx context.Context, deadline time.Time) (yes bool, err error) {
	err = poll(ctx, func() (bool, error) {
		conn, _, err := s.connect(ctx)
		if err == nil {
			yes = true
			return true, conn.Close()
		}
		if _, foreign := errors.AsType[*ForeignError](err); !foreign {
			return true, nil
		}
		if time.Now().After(deadline) {
			return false, err
		}
		return false, nil
	})
	return yes, err
}

// spawn runs "turnstile serve" in a session of its own and waits until it answers.
func (s *Server) spawn(ctx context.Context) error {
	args := []string{
		"turnstile", "serve", "--detached", "--data", s.Data(), "--idle-exit", s.idle, "--listen", s.Address(),
	}
	if err := PrivateDir(filepath.Dir(s.socket)); err != nil {
		return fmt.Errorf("cannot keep the socket of this user's own server: %w; or name a server with --connect", err)
	}
	log, begin, err := s.openLog()
	if err != nil {
		return fmt.Errorf("cannot keep this user's own server: %w; %s", err, Elsewhere)
	}
	defer log.Close()
	exe, err := Executable()
	if err != nil {
		return fmt.Errorf("cannot start this user's own server: %w", err)
	}
	for deadline := time.Now().Add(retryFor); ; {
		cmd := &exec.Cmd{
			Path: exe, Args: args, Dir: s.dir, Env: s.env, Stdout: log, Stderr: log, SysProcAttr: detached(),
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("cannot start this user's own server: %w", err)
		}
		ended := make(chan struct{})
		go func() { // the server outlives us; if it does not, it must be reaped
			defer close(ended)
			_ = cmd.Wait() // the reason of a failure is in its log
		}()
		err := s.await(ctx, ended)
		if err == nil && s.Started != nil {
			s.Started()
		}
		if err == nil || !errors.Is(err, errDidNotStart) || time.Now().After(deadline) {
			return s.explain(err, begin)
		}
		// An idle server that is just ending may still have the data, or another one may be starting.
		select {
		case <-ctx.Done():
			return s.explain(context.Cause(ctx), begin)
		case <-time.After(retryEvery):
		}
	}
}

var errDidNotStart = errors.New("it ended at once")

// await returns when the server answers.
func (s *Server) await(ctx context.Context, ended <-chan struct{}) error {
	err := poll(ctx, func() (bool, error) {
		if conn, _, err := s.connect(ctx); err == nil {
			return true, conn.Close()
		}
		select {
		case <-ended:
			return false, errDidNotStart
		default:
			return false, nil
		}
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it does not answer: %w", err)
	}
	return err
}

// openLog opens the server's log for appending, and returns how long it is.
func (s *Server) openLog() (*os.File, int64, error) {
	info, err := os.Stat(s.Log())
	if err == nil && info.Mode()&fs.ModeNamedPipe != 0 { // to open it may wait for ever
		return nil, 0, fmt.Errorf("%s is a pipe: remove it", s.Log())
	}
	if err == nil && info.Size() > maxLog {
		if err := os.Rename(s.Log(), s.Log()+".1"); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// explain adds to err what the server last wrote to its log since begin, and where the log is.
func (s *Server) explain(err error, begin int64) error {
	if err == nil {
		return nil
	}
	last := ""
	if f, ferr := os.Open(s.Log()); ferr == nil {
		defer f.Close()
		if text, rerr := io.ReadAll(io.NewSectionReader(f, begin, maxLog)); rerr == nil {
			text = bytes.TrimSpace(text)
			last = strings.TrimPrefix(string(text[bytes.LastIndexByte(text, '\n')+1:]), "turnstile: ")
		}
	}
	if last == "" { // the disk may be full
		if f, ferr := os.OpenFile(s.Log(), os.O_APPEND|os.O_WRONLY, 0); ferr == nil {
			defer f.Close()
			if _, werr := f.WriteString("\n"); werr != nil {
				last = werr.Error()
			}
		}
	}
	if last != "" {
		last = ": " + last
	}
	return fmt.Errorf("cannot start this user's own server: %w%s; its log is %s", err, last, s.Log())
}

// LockFile locks a file, until unlock or the end of the process.
func LockFile(ctx context.Context, path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := poll(ctx, func() (bool, error) { return tryLock(f) }); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f.Close, nil
}

// poll calls f again and again, until it reports true or an error.
func poll(ctx context.Context, f func() (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// PrivateDir makes a directory that only this user can enter. It returns an error if another user has made it.
func PrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir() || !Ours(dir):
		return fmt.Errorf("%s belongs to another user: remove it", dir)
	}
	return nil
}
