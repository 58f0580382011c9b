package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
	idleExit    = "10m"               // how long the user's own server stays without a session
	socketName  = "turnstile.sock"    // in the runtime and in the state directory
	maxOwnLog   = 1 << 20             // the own server's log is set aside when it is larger
	maxSockPath = len(unixPath{}) - 1 // what the system takes for the path of a unix socket
	secondHope  = time.Second         // how long to try again when the server ended at once
	tryEvery    = 50 * time.Millisecond
	knockEvery  = 5 * time.Millisecond // how often to look whether the server that was started answers
)

// ownEnvironment is what the own server keeps of the environment of who starts it: what it needs, and nobody's secrets.
var ownEnvironment = []string{
	"HOME", "USER", "LOGNAME", "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "GOCOVERDIR",
	"SYSTEMROOT", "LOCALAPPDATA", "USERPROFILE", "TEMP", "TMP",
}

// checkSockets refuses unix sockets whose path the system cannot take.
func checkSockets(addresses ...string) error {
	for _, address := range addresses {
		path, ok := strings.CutPrefix(strings.TrimSpace(address), "unix:")
		if path, _, _ = strings.Cut(path, "!"); ok && len(path) > maxSockPath {
			return fmt.Errorf("the path of the unix socket %s has %d bytes, and this system takes %d: choose a shorter one",
				path, len(path), maxSockPath)
		}
	}
	return nil
}

type unixPath = [len(syscall.RawSockaddrUnix{}.Path)]byte

// ownServer is the user's own embedded server on this machine: used when no server is named, started when it is not there. It serves
// one state directory, and whoever uses that directory finds it, from a login shell and from cron alike.
type ownServer struct {
	dir     string   // the state directory: data, log and the lock of those who start the server
	sockets []string // where it listens, in the order in which to look
	env     []string // of the server's process
	idle    string
	started func() // called when we have started it; nil if nobody wants to know
}

// findOwnServer returns where the own server is, or would be.
func findOwnServer(env environ) (*ownServer, error) {
	dir, err := stateDir(env)
	if err != nil {
		return nil, err
	}
	o := &ownServer{dir: dir, env: env.only(ownEnvironment...), idle: env.get(variable("idle-exit"))}
	if o.idle == "" {
		o.idle = idleExit
	}
	// The server listens in both directories: the runtime directory goes away at logout and is not there for cron.
	if runtimeDir := env.get("XDG_RUNTIME_DIR"); filepath.IsAbs(runtimeDir) && ours(runtimeDir) {
		socket := filepath.Join(runtimeDir, "turnstile", socketName)
		if len(socket) <= maxSockPath {
			o.sockets = append(o.sockets, socket)
		}
	}
	socket := filepath.Join(dir, socketName)
	if len(socket) > maxSockPath {
		socket = shortSocket(dir)
	}
	o.sockets = append(o.sockets, socket)
	return o, nil
}

// stateDir returns the directory of the user's own server, by the XDG base directory specification. It need not exist.
func stateDir(env environ) (string, error) {
	if dir := env.get("XDG_STATE_HOME"); filepath.IsAbs(dir) { // the specification says to ignore relative ones
		return filepath.Join(dir, "turnstile"), nil
	}
	if dir := env.get("LOCALAPPDATA"); runtime.GOOS == "windows" && dir != "" {
		return filepath.Join(dir, "turnstile"), nil
	}
	home := env.get("HOME")
	if home == "" { // a system service: the same directory as this user's shells must come out
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	if !filepath.IsAbs(home) {
		return "", errors.New("there is no place for this user's own server: set HOME or XDG_STATE_HOME, or name a server with --connect")
	}
	return filepath.Join(home, ".local", "state", "turnstile"), nil
}

// shortSocket returns the path of the socket for a state directory whose own path is too long for one.
func shortSocket(dir string) string {
	tmp := "/tmp" // not TMPDIR: everybody who uses the state directory must find the same socket
	if runtime.GOOS == "windows" {
		tmp = os.TempDir()
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(tmp, fmt.Sprintf("turnstile-%d", os.Getuid()), hex.EncodeToString(sum[:8])+".sock")
}

func (o *ownServer) log() string { return filepath.Join(o.dir, ownLogName) }

const ownLogName = "server.log"

// dial connects to the server, and starts it first if it is not there: also one that went away while we were connected, whose sessions
// are in its data. It fits zk.Config.Dial.
func (o *ownServer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if conn, err := o.knock(ctx); err == nil {
		return conn, nil
	}
	if err := o.start(ctx); err != nil {
		return nil, err
	}
	return o.knock(ctx)
}

// ensure starts the server if it is not there.
func (o *ownServer) ensure(ctx context.Context) error {
	conn, err := o.dial(ctx, "", "")
	if err != nil {
		return err
	}
	return conn.Close()
}

// knock connects to the server if it is there.
func (o *ownServer) knock(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	var errs []error
	for _, socket := range o.sockets {
		if dir := filepath.Dir(socket); !ours(dir) { // under /tmp anybody can make one that looks like ours
			errs = append(errs, fmt.Errorf("no directory of this user: %s", dir))
			continue
		}
		conn, err := d.DialContext(ctx, "unix", socket)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// start starts the server and returns when it answers. Of several starters one starts it, and the others find it.
func (o *ownServer) start(ctx context.Context) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep this user's own server: %w", err)
	}
	if !ours(o.dir) {
		return fmt.Errorf("%s belongs to another user: set XDG_STATE_HOME to a directory of yours, or name a server with --connect", o.dir)
	}
	unlock, err := lockFile(ctx, filepath.Join(o.dir, "start.lock"))
	if err != nil {
		return fmt.Errorf("waiting for another turnstile to start this user's own server: %w", err)
	}
	defer unlock()
	if conn, err := o.knock(ctx); err == nil {
		return conn.Close()
	}
	return o.spawn(ctx)
}

// spawn runs "turnstile serve" in a session of its own and waits until it answers.
func (o *ownServer) spawn(ctx context.Context) error {
	args := []string{"turnstile", "serve", "--detached", "--data", o.data(), "--idle-exit", o.idle}
	for _, socket := range o.sockets {
		if err := privateDir(filepath.Dir(socket)); err != nil {
			return fmt.Errorf("cannot keep the socket of this user's own server: %w", err)
		}
		args = append(args, "--listen", "unix:"+socket)
	}
	log, begin, err := o.openLog()
	if err != nil {
		return fmt.Errorf("cannot keep this user's own server: %w", err)
	}
	defer log.Close()
	exe, err := executable()
	if err != nil {
		return fmt.Errorf("cannot start this user's own server: %w", err)
	}
	for hope := time.Now().Add(secondHope); ; {
		cmd := &exec.Cmd{Path: exe, Args: args, Dir: o.dir, Env: o.env, Stdout: log, Stderr: log, SysProcAttr: detached()}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("cannot start this user's own server: %w", err)
		}
		ended := make(chan struct{})
		go func() { // the server outlives us; if it does not, it must not stay a zombie
			defer close(ended)
			_ = cmd.Wait() // what went wrong is in its log
		}()
		err := o.await(ctx, ended)
		if err == nil && o.started != nil {
			o.started()
		}
		if err == nil || !errors.Is(err, errDidNotStart) || time.Now().After(hope) {
			return o.explain(err, begin)
		}
		// An idle server that is just ending may still have the data, or one whose starter was killed is on its way.
		select {
		case <-ctx.Done():
			return o.explain(context.Cause(ctx), begin)
		case <-time.After(tryEvery):
		}
	}
}

var errDidNotStart = errors.New("it ended at once")

// await returns when the server answers.
func (o *ownServer) await(ctx context.Context, ended <-chan struct{}) error {
	tick := time.NewTicker(knockEvery)
	defer tick.Stop()
	for {
		if conn, err := o.knock(ctx); err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", context.Cause(ctx))
		case <-ended:
			return errDidNotStart
		case <-tick.C:
		}
	}
}

// openLog opens the server's log for appending, and returns how long it is.
func (o *ownServer) openLog() (*os.File, int64, error) {
	if info, err := os.Stat(o.log()); err == nil && info.Size() > maxOwnLog {
		if err := os.Rename(o.log(), o.log()+".1"); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(o.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// explain adds to err what the server last wrote to its log since begin, and where the log is.
func (o *ownServer) explain(err error, begin int64) error {
	if err == nil {
		return nil
	}
	last := ""
	if f, ferr := os.Open(o.log()); ferr == nil {
		defer f.Close()
		if text, rerr := io.ReadAll(io.NewSectionReader(f, begin, maxOwnLog)); rerr == nil {
			text = bytes.TrimSpace(text)
			last = strings.TrimPrefix(string(text[bytes.LastIndexByte(text, '\n')+1:]), "turnstile: ")
		}
	}
	if last != "" {
		last = ": " + last
	}
	return fmt.Errorf("cannot start this user's own server: %w%s; its log is %s", err, last, o.log())
}

// privateDir makes a directory that nobody else can enter, and refuses one that somebody else made.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir() || !ours(dir):
		return fmt.Errorf("%s belongs to another user: remove it, or name a server with --connect", dir)
	}
	return nil
}
