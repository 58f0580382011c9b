// Package command is what the commands of turnstile have in common: the environment and streams of this process, the
// flags that say how to reach a server, running a program under a hold, and exit codes.
package command

// Streams, environment and messages.

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// App is what every command needs of this process, and how much it is to say.
type App struct {
	Args   []string // of this process, without its name
	Env    Environ
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	Exits bool // the process ends when the command has ended

	Did atomic.Bool // the command has changed what it was to change; what is left is to say so

	Quiet   bool // say only errors
	Verbose bool // say what happens
}

// Say writes a line for people to standard error, unless --quiet is set.
func (a *App) Say(format string, args ...any) {
	if !a.Quiet {
		a.Complain(format, args...)
	}
}

// Complain writes a line for people to standard error.
func (a *App) Complain(format string, args ...any) {
	_ = Fprintf(a.Stderr, "turnstile: "+format+"\n", args...) // there is no other place to say so
}

// Detail writes a line to standard error if --verbose is set.
func (a *App) Detail(format string, args ...any) {
	if a.Verbose {
		a.Say(format, args...)
	}
}

// chatty reports whether to say what a user at a terminal wants to know, but not the reader of a log.
func (a *App) chatty() bool { return a.Verbose || !a.Quiet && IsTerminal(a.Stderr) }

// sayWaiting says after a moment why the caller still waits, to a user who wants to know or sits at a terminal. The
// caller calls stop when the wait is over.
func (a *App) sayWaiting(path string, why func() string) (stop func() bool) {
	if !a.chatty() {
		return func() bool { return false }
	}
	return time.AfterFunc(sayWaitingAfter, func() {
		if why := why(); why != "" {
			a.Say("%s: waiting, %s", path, why)
		}
	}).Stop
}

// sayWaitingAfter is how long a wait lasts before it is worth a message.
const sayWaitingAfter = 200 * time.Millisecond

// Printf writes to standard output for people: see Sprintf.
func (a *App) Printf(format string, args ...any) error {
	_, err := io.WriteString(a.Stdout, string(Sprintf(format, args...)))
	return a.OutputError(err)
}

// Table returns columns for people on standard output. The caller fills it with Fprintf.
func (a *App) Table() *tabwriter.Writer { return Table(a.Stdout) }

// Table returns columns for people.
func Table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Line writes a line that other programs may read: as it is, but for people if standard output is a terminal. Format
// has no arguments but text.
func (a *App) Line(format string, args ...any) error {
	if IsTerminal(a.Stdout) {
		return a.Printf(format+"\n", args...)
	}
	_, err := fmt.Fprintf(a.Stdout, format+"\n", args...)
	return a.OutputError(err)
}

// Bytes returns data to be written to standard output: as it is, but with all that is not Printable escaped, except
// line ends and tabs, if that is a terminal.
func (a *App) Bytes(data []byte) []byte {
	if !IsTerminal(a.Stdout) {
		return data
	}
	return []byte(PrintableLines(string(data)))
}

// OutputError is the error of output that cannot be written. If its reader has gone, as with "| head -1", there is
// nothing to say. Otherwise it says whether the command has done its work: who repeats it would do it twice.
//
// A standard output that is closed, as with ">&-", has no error: Go's runtime opens /dev/null in its place before any
// of our code runs, in the same mode as Python's subprocess.DEVNULL and daemon(3), whose output is to be lost.
func (a *App) OutputError(err error) error {
	_, already := errors.AsType[*Error](err)
	switch {
	case err == nil, already:
		return err
	case errors.Is(err, syscall.EPIPE):
		return &Error{Code: ExitSignal + int(syscall.SIGPIPE)}
	case a.Did.Load():
		return &Error{Code: ExitOutput, Err: fmt.Errorf("it was done, but the output cannot be written: %w", err)}
	}
	return &Error{Code: ExitOutput, Err: fmt.Errorf("the output cannot be written: %w", err)}
}

// OutputError is App.OutputError of a command that changes nothing.
func OutputError(err error) error { return new(App).OutputError(err) }

// JSON prints v as one line of JSON, as docs/cli-json.md promises.
func (a *App) JSON(v any) error {
	b, err := JSON(v)
	if err != nil {
		return Failed(err)
	}
	_, err = a.Stdout.Write(append(b, '\n'))
	return a.OutputError(err)
}

// Report prints v as JSON, or else a text for people.
func (a *App) Report(asJSON bool, v any, format string, args ...any) error {
	if asJSON {
		return a.JSON(v)
	}
	return a.Printf(format, args...)
}

// ReportLine prints v as JSON, or else a line that other programs may read.
func (a *App) ReportLine(asJSON bool, v any, format string, args ...any) error {
	if asJSON {
		return a.JSON(v)
	}
	return a.Line(format, args...)
}

// NewLogger returns a logger that writes text for people, with sessions as SessionID writes them.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	hex := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "session" && a.Value.Kind() == slog.KindInt64 {
			a.Value = slog.StringValue(SessionID(a.Value.Int64()))
		}
		return a
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: hex}))
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
