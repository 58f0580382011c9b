package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// footprint measures how soon a server answers after its start, on an empty folder, and how much memory the servers
// that were under load use now.
func footprint(ctx context.Context, b *bench, l *load) ([]row, error) {
	memory := "resident memory after the loads above"
	there, rows := b.available(l)
	var starts, held []row
	for _, c := range there {
		starts = append(starts, row{load: l.title, contender: c, unit: "ms", lessIsMore: true})
		if c.server == onServe {
			starts[len(starts)-1].limit = limit{atMost, 100}
		}
	}
	for range b.options.rounds {
		for i := range starts {
			took, err := b.servers.startUp(ctx, starts[i].contender.server)
			if err != nil {
				return nil, err
			}
			starts[i].figures = append(starts[i].figures, float64(took.Milliseconds()))
		}
	}
	for _, c := range there {
		backend, err := b.servers.get(ctx, c.server)
		if err != nil {
			return nil, err
		}
		megabytes, err := resident(backend.pid)
		if err != nil {
			return nil, err
		}
		r := row{load: memory, contender: c, figures: []float64{megabytes}, unit: "MB", lessIsMore: true}
		if c.server == onServe {
			r.limit = limit{atMost, 100}
		}
		held = append(held, r)
	}
	return append(append(starts, held...), rows...), nil
}

// startUp starts one more server, ends it, and returns how long it took to answer.
func (s *servers) startUp(ctx context.Context, server string) (took time.Duration, err error) {
	host, err := peer.NewHost(s.dir, s.log)
	if err != nil {
		return 0, err
	}
	defer host.Close()
	defer host.Recover(&err)
	if server == onServe {
		d, err := s.startServe(ctx, host)
		if err != nil {
			return 0, err
		}
		return d.took, nil
	}
	start := time.Now()
	peer.ZooKeeper(host, zookeeperOptions) //nolint:contextcheck // a peer ends with its host
	return time.Since(start), nil
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

// processorOf returns how much of the processor's time processes have had, as Linux counts it: in hundredths of a
// second.
func processorOf(pids ...int) (all time.Duration, err error) {
	const tick = time.Second / 100
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		var user, system int64
		_, rest, _ := strings.Cut(string(text), ") ") // behind the name
		fields := strings.Fields(rest)
		if len(fields) < 13 {
			return 0, fmt.Errorf("process %d: %q", pid, text)
		}
		if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
			return 0, fmt.Errorf("process %d: %q: %w", pid, text, err)
		}
		all += time.Duration(user+system) * tick
	}
	return all, nil
}

// liveHeap returns the live bytes of a Java process, after two full collections: one leaves what must be finalized.
func liveHeap(ctx context.Context, pid int) (float64, error) {
	var text []byte
	for range 2 {
		var err error
		if text, err = exec.CommandContext(ctx, "jcmd", strconv.Itoa(pid), "GC.class_histogram").Output(); err != nil {
			return 0, fmt.Errorf("jcmd: %w", err)
		}
	}
	return histogramTotal(string(text))
}

// histogramTotal reads the last line of a class histogram: Total, instances, bytes.
func histogramTotal(text string) (float64, error) {
	text = strings.TrimSpace(text)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	fields := strings.Fields(last)
	if len(fields) != 3 || fields[0] != "Total" {
		return 0, fmt.Errorf("a class histogram ends with %q, want its total", last)
	}
	return strconv.ParseFloat(fields[2], 64)
}
