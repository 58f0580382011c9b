package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
)

// footprint measures how soon a server answers after its start, on an empty folder, and how much memory the servers that
// were under load hold now.
func footprint(ctx context.Context, h *host, s *servers, o options) ([]row, error) {
	const start, memory = "start-up: from the process's start to its first answer", "resident memory after the loads above"
	ours := row{load: start, name: "turnstile serve", unit: "ms", lessIsMore: true, limit: 100}
	theirs := row{load: start, name: "ZooKeeper 3.8.0", unit: "ms", lessIsMore: true}
	for range o.rounds {
		one, err := startServe(ctx, s.ours.cmd.Path, h.TempDir())
		if err != nil {
			return nil, err
		}
		one.stop()
		ours.figures = append(ours.figures, float64(one.took.Milliseconds()))
		theirs.figures = append(theirs.figures, float64(startZooKeeper(h).Milliseconds())) //nolint:contextcheck // a peer ends with its host
	}
	rows := []row{ours, theirs}
	for _, p := range []struct {
		name  string
		pid   int
		limit float64
	}{
		{"turnstile serve", s.ours.cmd.Process.Pid, 100},
		{"ZooKeeper 3.8.0", s.zookeeper.PID(0), 0},
	} {
		held, err := resident(p.pid)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{load: memory, name: p.name, figures: []float64{held}, unit: "MB", lessIsMore: true, limit: p.limit})
	}
	return rows, nil
}

// startZooKeeper starts one more ZooKeeper, ends it, and returns how long it took to answer.
func startZooKeeper(h *host) time.Duration {
	one := &host{dir: h.dir, log: h.log}
	defer one.close()
	start := time.Now()
	peer.ZooKeeper(one, zookeeperOptions)
	return time.Since(start)
}

// resident returns a process's resident memory in megabytes, as Linux counts it.
func resident(pid int) (float64, error) {
	value := procField(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
	kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(value, " kB"), 64)
	if err != nil {
		return 0, fmt.Errorf("resident memory of process %d: %w", pid, err)
	}
	return kilobytes * 1024 / 1e6, nil
}
