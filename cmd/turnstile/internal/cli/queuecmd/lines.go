package queuecmd

// turnstile queue put --lines.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	chunkBytes = 256 << 10 // lines are read ahead in chunks of about this size
	maxChunks  = 8         // that are read ahead
	batchBytes = 4 << 20   // about as much is put at a time
	lineBytes  = 100       // added to the length of a line to account for its overhead
)

// linesJSON is what "turnstile queue put --lines --json" prints.
type linesJSON struct {
	Path  string `json:"path"`
	Items int    `json:"items"`
	Maybe int    `json:"maybe,omitempty"`
}

var errLongLine = fmt.Errorf("longer than %d bytes", maxBody)

// chunk is lines that have been read. err says why there are no more after them: io.EOF at the end.
type chunk struct {
	lines [][]byte
	bytes int
	err   error
}

// readLines sends the lines of r in chunks, and sends what it has before a read of r could block. A line includes its
// newline; a NUL byte between items belongs to none of them.
func readLines(r io.Reader, end byte, to chan<- chunk) {
	in := bufio.NewReaderSize(r, 64<<10)
	var next chunk
	for next.err == nil {
		var line []byte
		line, next.err = readLine(in, end)
		if next.err == nil || next.err == io.EOF && len(line) > 0 { //nolint:errorlint // as bufio returns it
			next.lines = append(next.lines, line)
			next.bytes += len(line) + lineBytes
		}
		ahead, _ := in.Peek(in.Buffered()) // what is there can be looked at
		if next.bytes >= chunkBytes || bytes.IndexByte(ahead, end) < 0 || next.err != nil {
			to <- next
			next = chunk{err: next.err}
		}
	}
}

// readLine returns the next line.
func readLine(in *bufio.Reader, end byte) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice(end)
		line = append(line, part...)
		switch {
		case err == nil && end == 0:
			return line[:len(line)-1], nil
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case len(line) > maxBody:
			return nil, errLongLine
		}
	}
}

// linePut is a running "put --lines".
type linePut struct {
	p     *putter
	in    int // lines that are certainly in the queue
	maybe int // lines after those that may be in it

	shown int       // on the terminal
	last  time.Time // when
}

// showEvery is how often progress is shown on a terminal.
const showEvery = 100 * time.Millisecond

// putLines puts every line of standard input.
func (p *putter) putLines(ctx context.Context) error {
	l := &linePut{p: p}
	if command.IsTerminal(p.App.Stderr) && !p.App.Quiet {
		if command.IsTerminal(p.App.Stdin) {
			p.App.Say("reading lines from the terminal; Ctrl-D at the beginning of a line ends them")
		}
		p.cfg.Hooks.Put = l.show
	}
	return p.with(ctx, func(ctx context.Context, _ *zk.Client, q *queue.Queue) error {
		err := l.run(ctx, q)
		if l.shown > 0 {
			_ = command.Fprintf(p.App.Stderr, "\r\x1b[K") // it is only progress
		}
		if err == nil {
			return l.report()
		}
		if err = l.stopped(ctx, err); p.AsJSON {
			err = cmp.Or(l.report(), err)
		}
		return err
	})
}

// show shows progress. It is only called while put waits.
func (l *linePut) show(_ context.Context, _ string, items int) {
	l.shown += items
	if now := time.Now(); now.Sub(l.last) >= showEvery {
		l.last = now
		_ = command.Fprintf(l.p.App.Stderr, "\r%s put", command.Plural(l.shown, "item"))
	}
}

// run puts lines until there are no more. A signal ends the reading; lines that are being put then are still put.
func (l *linePut) run(ctx context.Context, q *queue.Queue) error {
	var end byte = '\n'
	if l.p.null {
		end = 0
	}
	chunks := make(chan chunk, maxChunks)
	go readLines(l.p.App.Stdin, end, chunks) // a read of a terminal cannot be interrupted; the process ends soon
	late, cancel := endLate(ctx)
	defer cancel()
	for {
		batch, end := gather(ctx, chunks)
		if err := l.put(late, q, batch); err != nil {
			return err
		}
		switch {
		case errors.Is(end, io.EOF):
			return nil
		case end != nil:
			return end
		}
	}
}

// gather returns the lines that have been read, at least one unless there are no more, and why there are no more.
func gather(ctx context.Context, chunks <-chan chunk) (batch []queue.Message, end error) {
	for size := 0; size < batchBytes; {
		var next chunk
		if len(batch) == 0 {
			select {
			case next = <-chunks:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		} else {
			select {
			case next = <-chunks:
			default:
				return batch, nil
			}
		}
		for _, line := range next.lines {
			batch = append(batch, queue.Message{Body: line})
		}
		if size += next.bytes; next.err != nil {
			return batch, next.err
		}
	}
	return batch, nil
}

// put puts lines. One that is too large is not put, nor are those behind it.
func (l *linePut) put(ctx context.Context, q *queue.Queue, batch []queue.Message) error {
	if len(batch) == 0 {
		return nil
	}
	for i, m := range batch {
		batch[i] = l.p.message
		batch[i].Body = m.Body
	}
	ids, err := q.PutBatch(ctx, batch)
	l.in += len(ids)
	large, ok := errors.AsType[*queue.TooLargeError](err)
	switch {
	case ok && large.Message > 0:
		if perr := l.put(ctx, q, batch[:large.Message]); perr != nil {
			return perr
		}
	case errors.Is(err, queue.ErrUnresolved):
		l.maybe = len(batch) - len(ids)
	}
	return err
}

// stopped is the error of a put that did not put all lines. It says how many it did, and how to go on.
func (l *linePut) stopped(ctx context.Context, err error) error {
	next := l.in + 1
	in := "no line is in"
	if l.in > 0 {
		in = fmt.Sprintf("lines 1 to %d are in", l.in)
	}
	if l.in == 1 {
		in = "line 1 is in"
	}
	exit := &command.Error{Code: command.ExitSoftware}
	exit.Hint = fmt.Sprintf("continue with line %d: tail -n +%d", next, next)
	if l.maybe > 0 {
		in = fmt.Sprintf("%s, and lines %d to %d may be", in, next, l.in+l.maybe)
		exit.Hint = fmt.Sprintf("continue after the last line that is in: turnstile queue len counts the items; "+
			"or with line %d, and some may be in twice", next)
	}
	var sig supervise.SignalError
	large, tooLarge := errors.AsType[*queue.TooLargeError](err)
	switch {
	case tooLarge:
		err = fmt.Errorf("line %d has %d bytes, and the limit is %d", next, large.Size, large.Limit)
	case errors.Is(err, errLongLine):
		tooLarge = true
		err = fmt.Errorf("line %d is %w", next, err)
	case errors.Is(context.Cause(ctx), command.ErrNoAnswer):
		exit.Code = command.ExitNoServer
		err = fmt.Errorf("no server answers at %s", l.p.Connection.Where())
	case errors.As(err, &sig), errors.As(context.Cause(ctx), &sig):
		exit.Code = sig.Ending().Code
		err = fmt.Errorf("interrupted by %w", sig)
	default:
		if e, ok := errors.AsType[*command.Error](command.Failed(err)); ok {
			exit.Code = e.Code
		}
	}
	if tooLarge {
		exit.Code = command.ExitData
		exit.Hint = fmt.Sprintf("to skip it, continue with line %d: tail -n +%d", next+1, next+1)
	}
	exit.Err = fmt.Errorf("%s: %w; %s", l.p.Path, err, in)
	return exit
}

// report prints how many lines are in.
func (l *linePut) report() error {
	j := linesJSON{Path: l.p.Path, Items: l.in, Maybe: l.maybe}
	l.p.App.Did.Store(true)
	return l.p.App.Report(l.p.AsJSON, j, "%s put\n", command.Plural(l.in, "item"))
}
