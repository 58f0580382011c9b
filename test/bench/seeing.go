package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// What is to be seen, and by how many.
const (
	fewLocks    = 100
	manyLocks   = 10_000
	crowdInLine = 10 // that wait for each of them
	pageViewers = 10
)

const (
	longTurn   = 16 // rounds of other loads, or 10 s: when much changes, a dashboard reads everything that often
	settleTurn = 5  // of them, before that: it has then found out that much changes
	idleTime   = 10 * time.Second
)

// A board is a dashboard that runs, with its viewers.
type board struct {
	host    *peer.Host
	daemon  *daemon
	url     string
	viewers *viewers
}

// openBoard starts a dashboard of the server at addr, with so many viewers, and returns when it shows something.
func (b *bench) openBoard(ctx context.Context, addr string) (d *board, err error) {
	binary, err := b.servers.turnstile(ctx)
	if err != nil {
		return nil, err
	}
	listen, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	host, err := peer.NewHost(b.servers.dir, b.log)
	if err != nil {
		return nil, err
	}
	d = &board{host: host, url: "http://" + listen + "/"}
	defer func() {
		if err != nil {
			host.Close()
		}
	}()
	defer host.Recover(&err)
	d.daemon, err = startDaemon(ctx, host, host.TempDir(), listen, func(ctx context.Context, addr string) error {
		return asks(ctx, addr, "GET /readyz HTTP/1.0\r\nHost: "+addr+"\r\n\r\n", " 200 OK")
	}, binary, "dashboard", "--connect", addr, "--listen", listen)
	if err != nil {
		return nil, err
	}
	d.viewers = watchPage(ctx, d.url, pageViewers)
	return d, nil
}

func (d *board) close() error {
	defer d.host.Close()
	return d.viewers.end()
}

// peak returns the most resident memory that the dashboard has had, in megabytes.
func (d *board) peak() (float64, error) {
	value := procField(fmt.Sprintf("/proc/%d/status", d.daemon.pid), "VmHWM")
	kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(value, " kB"), 64)
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", d.daemon.pid, err)
	}
	return kilobytes * 1024 / 1e6, nil
}

// idle returns how many bytes a second each viewer gets while nothing changes.
func (d *board) idle(ctx context.Context) (float64, error) {
	before, views := d.viewers.got.Load(), d.viewers.views.Load()
	start := time.Now()
	if err := wait(ctx, idleTime); err != nil {
		return 0, err
	}
	took := time.Since(start).Seconds()
	if d.viewers.views.Load() == views {
		return 0, errors.New("not one viewer has got an answer")
	}
	return float64(d.viewers.got.Load()-before) / took / pageViewers, nil
}

// page returns how many milliseconds a page takes, for one viewer more.
func (d *board) page(ctx context.Context, path string) (float64, error) {
	start := time.Now()
	_, err := look(ctx, http.DefaultClient, d.url+path, false, "")
	return milliseconds(time.Since(start)), err
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// listedAndShown measures what it takes to list a crowd, and what a dashboard shows of it while nothing changes.
func listedAndShown(ctx context.Context, b *bench, l *load) ([]row, error) {
	return b.amongCrowds(ctx, l, func(c contender, backend *backend) ([]row, error) {
		listed, err := b.list(ctx, l, c, backend)
		if err != nil {
			return nil, err
		}
		shown, err := b.show(ctx, l, c, backend)
		return append(listed, shown...), err
	})
}

// besideBoard measures what a dashboard of a crowd costs those who lock something else.
func besideBoard(ctx context.Context, b *bench, l *load) ([]row, error) {
	return b.amongCrowds(ctx, l, func(c contender, backend *backend) ([]row, error) {
		return b.workBeside(ctx, l, c, backend)
	})
}

// amongCrowds measures on each server while there is a crowd on it. The rows are those of each server in turn.
func (b *bench) amongCrowds(
	ctx context.Context, l *load, measure func(c contender, backend *backend) ([]row, error),
) ([]row, error) {
	there, rows := b.available(l)
	var tables [][]row
	for _, c := range there {
		table, err := b.amongCrowd(ctx, l, c, measure)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.title(), err)
		}
		for i, r := range table {
			if len(tables) == i {
				tables = append(tables, nil)
			}
			tables[i] = append(tables[i], r)
		}
	}
	return append(slices.Concat(tables...), rows...), nil
}

func (b *bench) amongCrowd(
	ctx context.Context, l *load, c contender, measure func(c contender, backend *backend) ([]row, error),
) ([]row, error) {
	backend, err := b.servers.get(ctx, c.server)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	crowd, err := newCrowd(ctx, backend.addr, b.root(l), l.depth, crowdInLine)
	if err != nil {
		return nil, err
	}
	defer b.servers.end() // there is much on it
	defer crowd.close()
	fmt.Fprintf(b.log, "  %s: %s in %v\n", c.server, crowdText(l.depth), time.Since(start).Round(time.Millisecond))
	return measure(c, backend)
}

func crowdText(locks int) string {
	return fmt.Sprintf("%s locks with %s waiters", number(float64(locks)), number(float64(locks*crowdInLine)))
}

// newRow returns a row of which less is more.
func newRow(title string, c contender, name, unit string, most limit) row {
	c.name = name
	return row{load: title, contender: c, unit: unit, lessIsMore: true, limit: most}
}

// list measures turnstile locks.
func (b *bench) list(ctx context.Context, l *load, c contender, backend *backend) ([]row, error) {
	binary, err := b.servers.turnstile(ctx)
	if err != nil {
		return nil, err
	}
	r := newRow(l.title+": listed", c, "turnstile locks", "ms", limit{atMost, 2000})
	for range b.options.rounds {
		cmd := exec.CommandContext(ctx, binary, "locks", "--connect", backend.addr)
		var out, complaints bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaints
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("turnstile locks: %w: %s", err, &complaints)
		}
		took := milliseconds(time.Since(start))
		if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != l.depth+1 {
			return nil, fmt.Errorf("turnstile locks: %d lines, want %d and a head: %s", lines, l.depth, &complaints)
		}
		fmt.Fprintf(b.log, "  %-60s %12s ms\n", r.contender.title(), number(took))
		r.figures = append(r.figures, took)
	}
	return []row{r}, nil
}

// show measures a dashboard while nothing changes.
func (b *bench) show(ctx context.Context, l *load, c contender, backend *backend) (rows []row, err error) {
	d, err := b.openBoard(ctx, backend.addr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	first := newRow(l.title+": from the start of a dashboard to its first page", c, "turnstile dashboard", "ms",
		limit{})
	first.figures = []float64{milliseconds(d.daemon.took)}
	page := newRow(l.title+": the first 100 of them from a dashboard that runs", c, "turnstile dashboard", "ms",
		limit{atMost, 100})
	idle := newRow(l.title+": what a viewer gets while nothing changes", c, "turnstile dashboard", "B/s",
		limit{atMost, 1000})
	if err := wait(ctx, idleTime/2); err != nil { // until all have a page, and all that it reads at first was read
		return nil, err
	}
	for range b.rounds(l) {
		figure, err := d.idle(ctx)
		if err != nil {
			return nil, err
		}
		idle.figures = append(idle.figures, figure)
	}
	for range b.options.rounds {
		figure, err := d.page(ctx, "locks")
		if err != nil {
			return nil, err
		}
		page.figures = append(page.figures, figure)
		if err := wait(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(b.log, "  %-60s %12s ms, %s B/s\n", idle.contender.title(),
		number(measure.Median(page.figures)), number(measure.Median(idle.figures)))
	return []row{page, first, idle}, nil
}

// A stretch is work, and what the servers and the dashboard have needed of the processor's time meanwhile.
type stretch struct {
	rate           float64 // cycles a second
	servers, board float64 // seconds of the processor's time: of a cycle, and of each second
}

// workBeside measures what a dashboard costs the work of others, and the memory that it has had in the end.
func (b *bench) workBeside(ctx context.Context, l *load, c contender, backend *backend) (rows []row, err error) {
	t, err := b.teamAt(ctx, l, c, b.root(l))
	if err != nil {
		return nil, err
	}
	defer t.workers.Close()
	var d *board
	defer func() {
		if d != nil {
			err = errors.Join(err, d.close())
		}
	}()
	work := besideRows(l, c)
	// A dashboard stays for two turns, so that what gets faster or slower meanwhile favours neither.
	var alone, beside stretch
	for i := range 2 * (b.options.rounds + 1) { // of five rounds no median would be certain
		switch now := i%4 == 1 || i%4 == 2; {
		case now && d == nil:
			if d, err = b.openBoard(ctx, backend.addr); err != nil {
				return nil, err
			}
			if _, err := t.stretch(settleTurn*b.options.duration, nil); err != nil {
				return nil, err
			}
		case !now && d != nil:
			if err := work.peak(d); err != nil {
				return nil, err
			}
			err = d.close()
			if d = nil; err != nil {
				return nil, err
			}
		}
		s, err := t.stretch(longTurn*b.options.duration, d)
		if err != nil {
			return nil, err
		}
		if d == nil {
			alone = s
		} else {
			beside = s
		}
		if i%2 == 1 {
			work.add(alone, beside)
			fmt.Fprintf(b.log, "  %-60s %12s cycles/s, with a dashboard %s: %s and %s %%\n", c.title(),
				number(alone.rate), number(beside.rate), work.lost.last(), work.busier.last())
		}
	}
	return work.rows(), nil
}

// beside is the rows about work beside a dashboard.
type beside struct{ alone, with, lost, busier, board, memory row }

func besideRows(l *load, c contender) *beside {
	most := limit{atMost, 1}
	with := fmt.Sprintf("%s, and a dashboard with %d viewers", c.name, pageViewers)
	w := &beside{
		alone:  newRow(l.title, c, c.name, "cycles/s", limit{}),
		with:   newRow(l.title, c, with, "cycles/s", limit{}),
		lost:   newRow(l.title+": of the rate, lost", c, with, "%", most),
		busier: newRow(l.title+": of the servers' processor time for a cycle, added", c, with, "%", most),
		board:  newRow(l.title+": of one core, taken by the dashboard", c, "turnstile dashboard", "%", limit{}),
		memory: newRow(l.title+": memory of the dashboard", c, "turnstile dashboard", "MB", limit{atMost, 100}),
	}
	w.lost.paired, w.busier.paired = true, true
	return w
}

func (w *beside) rows() []row { return []row{w.alone, w.with, w.lost, w.busier, w.board, w.memory} }

// add adds a round.
func (w *beside) add(alone, with stretch) {
	for _, f := range []struct {
		r      *row
		figure float64
	}{
		{&w.alone, alone.rate},
		{&w.with, with.rate},
		{&w.lost, 100 * (1 - with.rate/alone.rate)},
		{&w.busier, 100 * (with.servers/alone.servers - 1)},
		{&w.board, 100 * with.board},
	} {
		f.r.figures = append(f.r.figures, f.figure)
	}
}

// peak adds the most memory that a dashboard has had.
func (w *beside) peak(d *board) error {
	peak, err := d.peak()
	w.memory.figures = append(w.memory.figures, peak)
	return err
}

func (r *row) last() string { return number(r.figures[len(r.figures)-1]) }

// stretch lets a team work for so long, beside a dashboard unless that is nil.
func (t *team) stretch(d time.Duration, beside *board) (s stretch, err error) {
	servers := append([]int{t.backend.pid}, t.backend.others...)
	var boards []int
	if beside != nil {
		boards = []int{beside.daemon.pid}
	}
	var times [2][2]time.Duration // before and after: of the servers, and of the dashboard
	var n int64
	var took time.Duration
	for i := range times {
		if i == 1 {
			if n, took, _, err = t.workers.Run(measure.Millis("run", d)); err != nil {
				return s, err
			}
		}
		of, err := processorOf(servers...)
		if err != nil {
			return s, err
		}
		board, err := processorOf(boards...)
		if err != nil {
			return s, err
		}
		times[i] = [2]time.Duration{of, board}
	}
	return stretch{
		rate:    float64(n) / took.Seconds(),
		servers: (times[1][0] - times[0][0]).Seconds() / float64(n),
		board:   (times[1][1] - times[0][1]).Seconds() / took.Seconds(),
	}, nil
}
