package command

// Commands that print what happens, until the reader of their output goes.

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// errReaderGone ends the context of WhileRead.
var errReaderGone = errors.New("the reader of the output has gone")

// ReaderGone reports whether standard output is a pipe whose reader has gone.
func (a *App) ReaderGone() bool {
	file, ok := a.Stdout.(*os.File)
	return ok && readerGone(file)
}

// WhileRead calls run with a context that also ends when standard output is a pipe whose reader has gone, as with
// "| head -1". Otherwise run would notice that with its next line, which may never come. Then WhileRead returns what
// OutputError does.
func (a *App) WhileRead(ctx context.Context, run func(ctx context.Context) error) error {
	file, ok := a.Stdout.(*os.File)
	if !ok {
		return run(ctx)
	}
	if info, err := file.Stat(); err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return run(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := onReaderGone(file, func() { cancel(errReaderGone) })
	err := run(ctx)
	stop()
	if errors.Is(context.Cause(ctx), errReaderGone) {
		return a.OutputError(syscall.EPIPE)
	}
	return err
}
