//go:build unix

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The test binary is also the turnstile that scripts run, and the puppet that it runs for them.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name != "turnstile" && name != "puppet" {
		heedSignals()
		for name, value := range map[string]string{
			"GORACE": quickExit, "TURNSTILE_SESSION_TIMEOUT": longSession, "TURNSTILE_GRACE": "5s",
		} {
			_ = os.Setenv(name, value) // they are valid
		}
	}
	testscript.Main(m, map[string]func(){
		"turnstile": func() { cli.MainWith(os.Getenv("SETTINGS")) }, // none of the machine that the tests run on
		"puppet":    puppet,
	})
}

// longSession is the session timeout unless a test asks for less. On a loaded machine a process may stand still for
// seconds: no hold is lost by that, and with a long grace no command is killed. It is the most that a server grants by
// default.
const longSession = "40s"

// quickExit makes programs with the race detector end at once, not after a second: the tests start many hundred.
const quickExit = "atexit_sleep_ms=0"

// heedSignals undoes what nohup, or a shell that starts us in the background, has done: what starts with a signal
// ignored keeps ignoring it, and so would every turnstile that the tests signal. What a process handles is back to its
// default in its children.
func heedSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"contenders": contenders,
			"serving":    serving,
			"create":     create,
			"foreign":    foreign,
		},
	})
}

// setup gives every script a home of its own, and a server at $SERVER.
func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("GORACE", quickExit)
	env.Setenv("TURNSTILE_SESSION_TIMEOUT", longSession)
	env.Setenv("STATE", filepath.Join(home, ".local/state/turnstile"))
	env.Defer(func() { stopServers(env.WorkDir) })
	srv, err := zktest.Start(zktest.SessionTimeouts(100*time.Millisecond, time.Minute))
	if err != nil {
		return err
	}
	env.Setenv("SERVER", srv.Addr())
	env.Defer(func() { _ = srv.Close() })
	return writeCertificates(filepath.Join(env.WorkDir, "tls"))
}

// stopServers ends the servers that commands under dir have started for themselves, and waits until they have let go
// of their files.
func stopServers(dir string) {
	for {
		pids, err := ownServers(dir)
		if err != nil {
			panic(err)
		}
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGTERM) // so that it takes its socket along; it may have ended meanwhile
		}
	}
}

// ownServers returns the processes of the servers that commands under dir have started for themselves.
func ownServers(dir string) ([]int, error) {
	list, err := exec.Command("ps", "-A", "-o", "pid=,args=").Output()
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range strings.Lines(string(list)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(strings.TrimSpace(args), "turnstile serve --detached --data "+dir+"/") {
			continue
		}
		n, err := strconv.Atoi(pid)
		if err != nil {
			return nil, err
		}
		pids = append(pids, n)
	}
	return pids, nil
}

// exits runs a command and checks its exit code: exits 69 turnstile who /x.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = shellCode(exit.ProcessState)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// contenders waits until so many stand in line: contenders /x 2. With -own it asks the user's own server.
func contenders(ts *testscript.TestScript, neg bool, args []string) {
	servers := ts.Getenv("SERVER")
	if len(args) == 3 && args[0] == "-own" {
		servers = "unix:" + filepath.Join(ts.Getenv("STATE"), "turnstile.sock")
		args = args[1:]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: contenders [-own] PATH NUMBER")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := zk.Open(ctx, zk.Config{Servers: servers})
	ts.Check(err)
	defer client.Close()
	sess, err := client.Session(ctx)
	ts.Check(err)
	ts.Check(awaitContenders(ctx, sess, args[0], want))
}

// patience is how long tests wait for what must come before they give up.
const patience = 60 * time.Second

// awaitContenders returns when so many stand in line at path.
func awaitContenders(ctx context.Context, sess *zk.Session, path string, want int) error {
	for {
		children, _, watch, err := sess.ChildrenW(ctx, path)
		switch {
		case errors.Is(err, zk.NoNode):
			var exists bool
			if _, exists, watch, err = sess.ExistsW(ctx, path); err != nil {
				return err
			}
			if exists {
				watch.Close()
				continue
			}
			if want == 0 {
				return nil
			}
		case err != nil:
			return err
		case len(children) == want:
			watch.Close()
			return nil
		}
		if _, err := watch.Next(ctx); err != nil {
			return fmt.Errorf("%s: %d contenders, want %d: %w", path, len(children), want, err)
		}
	}
}

// create makes a node that only the given user may use: create /path user:password.
func create(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: create PATH USER:PASSWORD")
	}
	user, password, _ := strings.Cut(args[1], ":")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := zk.Open(ctx, zk.Config{Servers: ts.Getenv("SERVER"), Auth: []zk.Auth{zk.Digest(user, password)}})
	ts.Check(err)
	defer client.Close()
	sess, err := client.Session(ctx)
	ts.Check(err)
	_, err = sess.CreateNode(ctx, zk.Node{Path: args[0], ACL: zk.CreatorACL()})
	ts.Check(err)
}

// foreign makes a contender of another program, which stays until the end of the script, and its parents: foreign
// /x/_c_1-lock- DATA. A number is put behind names that end in a dash or an underscore.
func foreign(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: foreign PATH DATA")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := zk.Open(ctx, zk.Config{Servers: ts.Getenv("SERVER")})
	ts.Check(err)
	ts.Defer(func() { _ = client.Close() })
	sess, err := client.Session(ctx)
	ts.Check(err)
	for i := range args[0] {
		if i > 0 && args[0][i] == '/' {
			if _, err := sess.CreateNode(ctx, zk.Node{Path: args[0][:i]}); !errors.Is(err, zk.NodeExists) {
				ts.Check(err)
			}
		}
	}
	mode := zk.Ephemeral
	if strings.HasSuffix(args[0], "-") || strings.HasSuffix(args[0], "_") {
		mode = zk.EphemeralSequential
	}
	_, err = sess.CreateNode(ctx, zk.Node{Path: args[0], Data: []byte(args[1]), Mode: mode})
	ts.Check(err)
}

// serving starts "turnstile serve" with the arguments, waits for its line and sets $ADDR to its first address and $PID
// to its process id: serving NAME ARG... It is stopped at the end of the script.
func serving(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: serving ARG...")
	}
	cmd := turnstile(append([]string{"serve"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Kill() // it may have ended meanwhile
		_ = cmd.Wait()
	})
	line, err := firstLine(out)
	ts.Check(err)
	m := regexp.MustCompile(`^serving (\S+).*\(pid (\d+),`).FindStringSubmatch(line)
	if m == nil {
		ts.Fatalf("no address in %q", line)
	}
	ts.Setenv("ADDR", m[1])
	ts.Setenv("PID", m[2])
}

// turnstile is the command with these arguments, to be started by the test itself.
func turnstile(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return &exec.Cmd{Path: exe, Args: append([]string{"turnstile"}, args...)}
}
