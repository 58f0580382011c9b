package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	chunkBytes = 256 << 10 // what is read ahead comes in chunks of about so much
	batchBytes = 4 << 20   // and is put about so much at a time
	lineBytes  = 100       // what a line counts beside its own bytes
	chunksKept = 8
)

// linesJSON is what "turnstile queue put --lines --json" prints.
type linesJSON struct {
	Path  string `json:"path"`
	Items int    `json:"items"`
	Maybe int    `json:"maybe,omitempty"`
}

var errLongLine = fmt.Errorf("longer than %d bytes", largest)

// chunk is lines that have been read, and why there are no more behind them: io.EOF at the end.
type chunk struct {
	lines [][]byte
	bytes int
	err   error
}

// readLines sends the lines of r, in chunks: at the latest when r has no more to give for now. A line has its newline, which belongs to a
// text as much as what is before it; a NUL byte between texts belongs to none.
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
		case len(line) > largest:
			return nil, errLongLine
		}
	}
}

// shipping is a "put --lines" under way.
type shipping struct {
	*putter
	in    int // lines that are in, for certain
	maybe int // lines behind those that may be in

	shown int       // on the terminal
	last  time.Time // when
}

// showEvery is how often a terminal is told of progress.
const showEvery = 100 * time.Millisecond

// putLines puts every line of standard input.
func (p *putter) putLines(ctx context.Context) error {
	s := &shipping{putter: p}
	if atTerminal(p.stderr) && !p.quiet {
		if atTerminal(p.stdin) {
			p.say("reading lines from the terminal; Ctrl-D at the beginning of a line ends them")
		}
		p.cfg.Hooks.Put = s.show
	}
	return p.with(ctx, func(ctx context.Context, _ *zk.Client, q *queue.Queue) error {
		err := s.ship(ctx, q)
		if s.shown > 0 {
			fmt.Fprint(s.stderr, "\r\x1b[K")
		}
		if err == nil {
			return s.report()
		}
		if err = s.stopped(ctx, err); s.asJSON {
			err = cmp.Or(s.report(), err)
		}
		return err
	})
}

// show tells of progress. It is called while put waits, by nobody else.
func (s *shipping) show(_ context.Context, items int) {
	s.shown += items
	if now := time.Now(); now.Sub(s.last) >= showEvery {
		s.last = now
		fmt.Fprintf(s.stderr, "\r%s put", plural(s.shown, "item"))
	}
}

// ship puts lines until there are no more. A signal ends the reading; what is under way then is brought to its end.
func (s *shipping) ship(ctx context.Context, q *queue.Queue) error {
	var end byte = '\n'
	if s.null {
		end = 0
	}
	chunks := make(chan chunk, chunksKept)
	go readLines(s.stdin, end, chunks) // a read of a terminal cannot be called off; the process ends soon after us
	last, cancel := lasting(ctx)
	defer cancel()
	for {
		batch, end := gather(ctx, chunks)
		if err := s.put(last, q, batch); err != nil {
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
func (s *shipping) put(ctx context.Context, q *queue.Queue, batch []queue.Message) error {
	if len(batch) == 0 {
		return nil
	}
	for i, m := range batch {
		batch[i] = s.message
		batch[i].Body = m.Body
	}
	ids, err := q.PutBatch(ctx, batch)
	s.in += len(ids)
	large, ok := errors.AsType[*queue.TooLargeError](err)
	switch {
	case ok && large.Message > 0:
		if perr := s.put(ctx, q, batch[:large.Message]); perr != nil {
			return perr
		}
	case errors.Is(err, queue.ErrUnresolved):
		s.maybe = len(batch) - len(ids)
	}
	return err
}

// stopped says of lines that did not all get in how many did, and how to go on.
func (s *shipping) stopped(ctx context.Context, err error) error {
	next := s.in + 1
	in := "no line is in"
	if s.in > 0 {
		in = fmt.Sprintf("lines 1 to %d are in", s.in)
	}
	if s.in == 1 {
		in = "line 1 is in"
	}
	exit := &exitError{code: ExitSoftware, hint: fmt.Sprintf("go on with line %d: tail -n +%d", next, next)}
	if s.maybe > 0 {
		in = fmt.Sprintf("%s, and lines %d to %d may be", in, next, s.in+s.maybe)
		exit.hint = fmt.Sprintf("go on behind what is in: turnstile queue len tells how many are there; or with line %d, "+
			"and some may be there twice", next)
	}
	var sig signalled
	large, tooLarge := errors.AsType[*queue.TooLargeError](err)
	switch {
	case tooLarge:
		exit.code = ExitData
		err = fmt.Errorf("line %d has %d bytes, and the limit is %d", next, large.Size, large.Limit)
		exit.hint = fmt.Sprintf("to leave it out, go on with line %d: tail -n +%d", next+1, next+1)
	case errors.Is(err, errLongLine):
		exit.code = ExitData
		err = fmt.Errorf("line %d is %w", next, err)
		exit.hint = fmt.Sprintf("to leave it out, go on with line %d: tail -n +%d", next+1, next+1)
	case errors.Is(context.Cause(ctx), errNoAnswer):
		exit.code = ExitNoServer
		err = fmt.Errorf("no server answers at %s", s.connection.where())
	case errors.As(err, &sig), errors.As(context.Cause(ctx), &sig):
		exit.code = sig.exitCode()
		err = fmt.Errorf("interrupted by %w", sig)
	default:
		if e, ok := errors.AsType[*exitError](failed(err)); ok {
			exit.code = e.code
		}
	}
	exit.err = fmt.Errorf("%s: %w; %s", s.path, err, in)
	return exit
}

// report prints how many lines are in.
func (s *shipping) report() error {
	if s.asJSON {
		return heard(s.json(linesJSON{Path: s.path, Items: s.in, Maybe: s.maybe}))
	}
	return s.printf("%s put\n", plural(s.in, "item"))
}
