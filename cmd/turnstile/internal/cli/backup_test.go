//go:build unix

package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zk"
)

// A restore that is killed at any time leaves a directory with the former state or the new one.
//
// Promise: 10
func TestKilledRestoreLeavesAState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "b.tar")
	socket := "unix:" + filepath.Join(dir, "s")
	run := func(code int, args ...string) string {
		t.Helper()
		r := start(t, args...)
		r.wantCode(code)
		return r.rest()
	}
	serve := func(f func()) {
		t.Helper()
		server := start(t, "serve", "--listen", socket, "--data", data)
		server.line()
		f()
		server.signal(syscall.SIGTERM)
		server.wantCode(0)
	}
	serve(func() {
		run(0, "create", "--connect", socket, "/saved")
		run(0, "backup", "--connect", socket, file)
		run(0, "create", "--connect", socket, "/later")
	})
	killed := 0
	for range soak.Pick(1, 50) {
		r := start(t, "restore", "--data", data, "--replace", file)
		time.Sleep(rand.N(1300 * time.Millisecond)) // a restore takes from one second to the next
		r.signal(syscall.SIGKILL)
		if r.wait() != 0 {
			killed++
		}
		serve(func() {
			switch tree := run(0, "ls", "--connect", socket, "/"); tree {
			case "later\nsaved\nzookeeper\n": // the former one
			case "saved\nzookeeper\n": // the new one, which is the former one of the next restore
				run(0, "create", "--connect", socket, "/later")
			default:
				t.Errorf("the root has %q", tree)
			}
		})
	}
	t.Logf("%d were killed", killed)
}

// TestBackupOfManyNodes measures a backup of many nodes while a client writes, and its restore. TURNSTILE_NODES says
// how many thousand nodes: the figures of docs/operating.md are of 1000.
func TestBackupOfManyNodes(t *testing.T) {
	parents := 5
	if n, err := strconv.Atoi(os.Getenv("TURNSTILE_NODES")); err == nil {
		parents = n
	}
	nodes := parents * 1000
	measured := parents >= 1000
	dir := t.TempDir()
	socket := "unix:" + filepath.Join(dir, "s")
	server := start(t, "serve", "--listen", socket, "--data", filepath.Join(dir, "data"))
	server.line()
	client, err := zk.Open(t.Context(), zk.Config{Servers: socket, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	data := slices.Repeat([]byte{'x'}, 100)
	for p := range parents {
		parent := fmt.Sprintf("/p%04d", p)
		ops := []zk.Op{zk.CreateOp(parent, nil, zk.Persistent)}
		for n := range nodes / parents {
			ops = append(ops, zk.CreateOp(fmt.Sprintf("%s/node-%010d", parent, n), data, zk.Persistent))
		}
		if _, err := client.Multi(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	if measured {
		time.Sleep(10 * time.Second) // real: the store is still merging its tables
	}
	writes := func(stop <-chan struct{}) (took []time.Duration) {
		for i := 0; ; i++ {
			select {
			case <-stop:
				slices.Sort(took)
				return took
			default:
			}
			begin := time.Now()
			if _, err := client.Set(t.Context(), fmt.Sprintf("/p%04d", i%parents), data, -1); err != nil {
				t.Error(err)
				return took
			}
			took = append(took, time.Since(begin))
			time.Sleep(time.Millisecond) // a load that leaves the disk some room
		}
	}
	measure := func(what string, f func()) {
		stop, done := make(chan struct{}), make(chan []time.Duration)
		go func() { done <- writes(stop) }()
		begin := time.Now()
		f()
		all := time.Since(begin)
		close(stop)
		took := <-done
		t.Logf("%s: %v; %d writes meanwhile, median %v, 99 %% %v, worst %v", what, all.Round(time.Millisecond),
			len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
	}
	if measured {
		measure("nothing", func() { time.Sleep(5 * time.Second) }) // to compare
	}
	file := filepath.Join(dir, "b.tar")
	for i := range 3 {
		r := start(t, "backup", "--connect", socket, file+strconv.Itoa(i))
		measure("backup", func() { r.wantCode(0) })
		if usage, ok := r.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			t.Logf("it took %d MB at most, on Linux", usage.Maxrss>>10)
		}
	}
	file += "0"
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MB", info.Size()>>20)
	begin := time.Now()
	restore := start(t, "restore", "--data", filepath.Join(dir, "copy"), file)
	if code := restore.wait(); code != 0 {
		t.Fatalf("restore exits with %d: %s", code, restore.stderr.String())
	}
	t.Logf("restore: %v", time.Since(begin).Round(time.Millisecond))
}
