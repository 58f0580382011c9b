package peer

// One server of a cluster.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A member is one server: a directory, its ports, and a process while it is running.
type member struct {
	dir     string
	addr    string
	program string
	args    []string
	proc    atomic.Pointer[process] // nil before the first start
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed by the goroutine that waits for the process
}

func newMember(dir string, i, n int, ports []int, links *Links, opts Options) (*member, error) {
	m := &member{dir: dir, addr: local(ports[3*i]), program: "java"}
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	if opts.Data != "" {
		if err := os.CopyFS(data, os.DirFS(opts.Data)); err != nil {
			return nil, err
		}
	}
	keys := map[string]string{
		"tickTime":                strconv.FormatInt(cmp.Or(opts.Tick, 200*time.Millisecond).Milliseconds(), 10),
		"dataDir":                 data,
		"clientPort":              strconv.Itoa(ports[3*i]),
		"clientPortAddress":       "127.0.0.1",
		"maxClientCnxns":          "0",
		"maxSessionTimeout":       "60000",
		"admin.enableServer":      "false",
		"4lw.commands.whitelist":  "*",
		"standaloneEnabled":       "true",
		"initLimit":               "50",
		"syncLimit":               "25",
		"autopurge.purgeInterval": "0",
		"extendedTypesEnabled":    "true",
		"quorumListenOnAllIPs":    "false",
	}
	if n > 1 {
		for j := range n {
			quorum, election := local(ports[3*j+1]), local(ports[3*j+2])
			if links != nil && i != j {
				var err error
				if quorum, err = links.between(i, j, quorum, false); err != nil {
					return nil, err
				}
				if election, err = links.between(i, j, election, true); err != nil {
					return nil, err
				}
			}
			_, port, _ := net.SplitHostPort(election)
			name := fmt.Sprintf("server.%d", j+1)
			if keys[name] = quorum + ":" + port; opts.Dynamic {
				keys[name] += ":participant;" + local(ports[3*j])
			}
		}
		if err := os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)), 0o644); err != nil {
			return nil, err
		}
	}
	if opts.Dynamic {
		keys["reconfigEnabled"] = "true"
	}
	if !opts.Fast {
		keys["preAllocSize"] = "1024" // KiB; by default every log begins as 64 MiB of zeros
	}
	maps.Copy(keys, opts.Keys)
	var cfg strings.Builder
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if keys[k] != "" {
			fmt.Fprintf(&cfg, "%s=%s\n", k, keys[k])
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(cfg.String()), 0o644); err != nil {
		return nil, err
	}
	m.args = javaArgs(opts, filepath.Join(dir, "zoo.cfg"))
	return m, nil
}

func javaArgs(opts Options, config string) []string {
	args := []string{"-Xmx" + cmp.Or(opts.Heap, "192m"), "-Xshare:auto", "-XX:+UseSerialGC", "-Djava.awt.headless=true"}
	if !opts.Fast {
		args = append(args, "-XX:TieredStopAtLevel=1")
	}
	properties := map[string]string{"zookeeper.jmx.log4j.disable": "true"}
	if opts.Links {
		// By default an election waits five seconds for a silent server, and a server that was alone for long returns
		// late.
		properties["zookeeper.cnxTimeout"] = "500"
		properties["zookeeper.fastleader.maxNotificationInterval"] = "1000"
	}
	if opts.Dynamic {
		properties["zookeeper.skipACL"] = "yes" // only a superuser may change the members
	}
	maps.Copy(properties, opts.Properties)
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		args = append(args, "-D"+k+"="+properties[k])
	}
	return append(args, "-cp", zookeeperConf+":"+zookeeperJar, mainClass, config)
}

// configure adds keys to the configuration of a ZooKeeper server.
func (m *member) configure(keys map[string]string) error {
	f, err := os.OpenFile(filepath.Join(m.dir, "zoo.cfg"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	for k, v := range keys {
		_, werr := fmt.Fprintf(f, "%s=%s\n", k, v)
		err = errors.Join(err, werr)
	}
	return errors.Join(err, f.Close())
}

// start starts the server's process and does not wait until it serves.
func (m *member) start() error {
	if err := m.dropTornLogs(); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p := &process{cmd: exec.CommandContext(context.Background(), m.program, m.args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = m.dir, log, log
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		// Linux kills the child when the thread that forked it ends, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is usually killed
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return err
	}
	m.proc.Store(p)
	return nil
}

// dropTornLogs removes transaction logs that end within their header. A kill can leave one without a transaction, and
// ZooKeeper 3.8.0 refuses to start with it.
func (m *member) dropTornLogs() error {
	const header = 16
	logs, err := filepath.Glob(filepath.Join(m.dir, "data", "version-2", "log.*"))
	if err != nil {
		return err
	}
	for _, name := range logs {
		if info, err := os.Stat(name); err == nil && info.Size() < header {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *member) pid() int {
	p := m.proc.Load()
	if p == nil {
		return 0
	}
	select {
	case <-p.done:
		return 0
	default:
		return p.cmd.Process.Pid
	}
}

func (m *member) exited() <-chan struct{} { return m.proc.Load().done }

func (m *member) kill() {
	p := m.proc.Load()
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it fails only if the process is already gone
	<-p.done
}

func (m *member) logTail() string {
	const limit = 2000
	b, err := os.ReadFile(filepath.Join(m.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-limit):]))
}
