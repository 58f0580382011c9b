package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// ownJSON is what "turnstile own-server status --json" prints.
type ownJSON struct {
	Running bool     `json:"running"`
	PID     int      `json:"pid,omitempty"`
	Connect []string `json:"connect"` // where it listens, or would
	Data    string   `json:"data"`
	Log     string   `json:"log"`
}

// errNotRunning is how status ends where there is no server: it has said so.
var errNotRunning = &exitError{code: ExitNotAcquired}

func (c *cli) ownServer() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "own-server",
		Short: "Show or stop this user's own server",
		Long: `The commands that name no server with --connect use this user's own. The first one starts it, in the
background; it ends after ten minutes without a client (TURNSTILE_IDLE_EXIT, when it is started), and the next
command starts it again. Its data, its log and its socket are in $XDG_STATE_HOME/turnstile, or
~/.local/state/turnstile. It is another server than that of "turnstile serve".`,
		Example: "  turnstile own-server status\n  turnstile own-server stop",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.ownStatus(), c.ownStop())
	return cmd
}

func (c *cli) ownStatus() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether this user's own server runs, and where its files are",
		Long: `Shows whether this user's own server runs, and where its files are. It does not start it.

Exit codes: 0 it runs; 1 it does not; 64 usage.`,
		Example: "  turnstile own-server status --json",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := findOwnServer(c.env)
			if err != nil {
				return &exitError{code: ExitNoServer, err: err}
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return failed(c.showOwn(ctx, own, asJSON))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (docs/cli-json.md)")
	return cmd
}

func (c *cli) showOwn(ctx context.Context, own *ownServer, asJSON bool) error {
	s := ownJSON{Data: own.data(), Log: own.log()}
	for _, socket := range own.sockets {
		s.Connect = append(s.Connect, "unix:"+socket)
	}
	conn, err := own.knock(ctx)
	if err == nil {
		s.Running, s.PID = true, own.pid()
		_ = conn.Close() // it was only to see whether somebody answers
	}
	state := "it does not run"
	if s.Running {
		state = fmt.Sprintf("it runs, pid %d", s.PID)
	}
	if asJSON {
		err = c.json(s)
	} else {
		_, err = fmt.Fprintf(c.stdout, "%s\nconnect  %s\ndata     %s\nlog      %s\n",
			state, strings.Join(s.Connect, " "), s.Data, s.Log)
	}
	if err == nil && !s.Running {
		return errNotRunning
	}
	return err
}

func (c *cli) ownStop() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Stop this user's own server",
		Long: `Stops this user's own server, and returns when it has ended. Nothing is lost by it: holders and waiters
start it again when they notice, with the program that they are. So it is also how to upgrade.

Exit codes: 0 it has ended, or did not run; 64 usage; 69 it cannot be stopped.`,
		Example: "  turnstile own-server stop",
		Args:    exactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := findOwnServer(c.env)
			if err == nil {
				ctx, stop := untilSignal(cmd.Context())
				defer stop()
				err = own.stop(ctx)
			}
			if _, signal := errors.AsType[signalled](err); err != nil && !signal {
				return &exitError{code: ExitNoServer, err: err}
			}
			return failed(err)
		},
	}
}

// data is the directory of the server's data.
func (o *ownServer) data() string { return filepath.Join(o.dir, "data") }

// pid returns the process of the server, 0 if nobody knows. It is kept beside the data by who has their lock.
func (o *ownServer) pid() int {
	text, err := os.ReadFile(filepath.Join(o.data(), "pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0 if it is something else
	return pid
}

// stop ends the server that answers now, and returns when that process has ended. Another one may have been started
// meanwhile.
func (o *ownServer) stop(ctx context.Context) error {
	conn, err := o.knock(ctx)
	if err != nil {
		return nil // nobody answers: there is nothing to stop
	}
	defer conn.Close()
	pid := o.pid()
	if pid == 0 {
		return fmt.Errorf("this user's own server answers, and its process is not known: no process id in %s", o.data())
	}
	proc, err := os.FindProcess(pid)
	if err == nil {
		err = proc.Signal(terminateSignal)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop this user's own server, pid %d: %w", pid, err)
	}
	tick := time.NewTicker(knockEvery)
	defer tick.Stop()
	for alive(proc) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}
