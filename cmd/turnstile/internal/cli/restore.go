package cli

// turnstile restore.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
	"github.com/seed-a3166700/turnstile/server"
)

// restoreJSON is what "turnstile restore --json" prints.
type restoreJSON struct {
	Data     string     `json:"data"`
	Zxid     int64      `json:"zxid"`
	Nodes    int64      `json:"nodes"`
	Dropped  int64      `json:"dropped"`
	Replaced string     `json:"replaced,omitempty"`
	Backup   backupJSON `json:"backup"`
}

// restore is a call of turnstile restore.
type restore struct {
	app     *command.App
	file    string
	data    string
	replace bool
	above   int64
	check   bool
	json    bool
}

func newRestore(app *command.App) *cobra.Command {
	r := &restore{app: app}
	cmd := &cobra.Command{
		Use:   "restore [flags] FILE",
		Short: "Make the data directory of the embedded server from a backup",
		Long: `Makes the state of a data directory from the backup in FILE, or from standard input if FILE is -. No
server may use the directory. A state that it has is moved into a directory below it, named replaced-…, but only with
--replace, and only when the new one is complete and was read back. A backup that is torn or altered changes
nothing.

Sessions, their ephemeral nodes and so all locks are not restored: clients learn that their sessions have
expired. Fencing tokens go on growing, also if one backup is restored twice: the new state begins above the
backup, above the state that it replaces, and above all states that were restored in an earlier second, by the
clock. So the clock must not be behind by more than the time since the last token. If it may be, or if a fence
has seen larger tokens from elsewhere, name the largest with --above.

Exit codes: 0 done; 1 a server uses the directory, or it has a state and --replace is not given; 64 usage; 65 the
backup is damaged; 70 the directory cannot be written, or the clock is wrong.`,
		Example: `  turnstile restore --data /var/lib/turnstile --replace turnstile.tar
  zstd -d <turnstile.tar.zst | turnstile restore --data ./copy -
  turnstile restore --check turnstile.tar`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			r.file, err = command.OneFile(cmd, args, "FILE")
			switch {
			case err != nil:
				return err
			case r.above < 0 || r.above > server.MaxAbove:
				return command.Usagef(cmd, "--above must be a token from 0 to %d: %d", int64(server.MaxAbove), r.above)
			}
			return command.UntilSignal(cmd.Context(), r.run)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&app.Quiet, "quiet", "q", false, "print only results and errors")
	flags.BoolVar(&r.json, "json", false, "print a JSON object (docs/cli-json.md)")
	flags.StringVar(&r.data, "data", "", "`directory` of the data (default: serve in this user's state directory)")
	flags.BoolVar(&r.replace, "replace", false, "put a state aside that the directory has")
	flags.Int64Var(&r.above, "above", 0, "a fencing `token`, above which those of the new state are")
	flags.BoolVar(&r.check, "check", false, "only verify the backup")
	command.VariablesOf("serve", flags, "data")
	return cmd
}

func (r *restore) run(ctx context.Context) error {
	in, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	if r.check {
		info, err := server.CheckBackup(in)
		if err != nil {
			return r.failed(ctx, err)
		}
		return r.app.Report(r.json, newBackupJSON(r.file, info), "%s: %s as of zxid %d, made %s\n", r.file,
			command.Plural(int(info.Nodes), "node"), info.Zxid, command.Timestamp(info.Made))
	}
	if r.data == "" {
		dir, err := ownserver.StateDir(r.app.Env.Vars)
		if err != nil {
			return &command.Error{Code: command.ExitUsage, Err: err, Hint: "name the directory with --data"}
		}
		r.data = filepath.Join(dir, "serve")
	}
	done, err := server.Restore(ctx, in, server.RestoreConfig{
		Data: r.data, Replace: r.replace, Above: r.above,
		Logger: command.NewLogger(r.app.Stderr, slog.LevelWarn),
	})
	if err != nil {
		return r.failed(ctx, err)
	}
	r.app.Did.Store(true)
	if done.Replaced != "" {
		r.app.Say("the former state is in %s: delete it when you do not need it", done.Replaced)
	}
	return r.app.Report(r.json, restoreJSON{
		Data: r.data, Zxid: done.Zxid, Nodes: done.Nodes, Dropped: done.Dropped, Replaced: done.Replaced,
		Backup: newBackupJSON(r.file, done.Backup),
	}, "%s: %s from zxid %d on (%s of sessions left out)\n", r.data, command.Plural(int(done.Nodes), "node"), done.Zxid,
		command.Plural(int(done.Dropped), "node"))
}

// open opens the backup. Reading it ends when ctx does.
func (r *restore) open(ctx context.Context) (io.ReadCloser, error) {
	if r.file != standard {
		f, err := openFile(ctx, r.file, os.O_RDONLY)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			err = notDirectory(f)
		}
		if err != nil {
			return nil, &command.Error{Code: command.ExitUsage, Err: err}
		}
		return struct {
			io.Reader
			io.Closer
		}{bufio.NewReaderSize(f, 1<<20), f}, nil
	}
	in, out := io.Pipe()
	context.AfterFunc(ctx, func() { _ = out.CloseWithError(context.Cause(ctx)) })
	go func() { // it ends with this process, if nothing comes any more
		_, err := io.Copy(out, r.app.Stdin)
		_ = out.CloseWithError(err)
	}()
	return in, nil
}

// notDirectory returns an error, and closes f, if f is a directory.
func notDirectory(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", f.Name())
	}
	if err != nil {
		_ = f.Close() // it was not read
	}
	return err
}

// source names the backup in errors.
func (r *restore) source() string {
	if r.file == standard {
		return "standard input"
	}
	return r.file
}

// failed gives an error its exit code, and says what to do.
func (r *restore) failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	switch {
	case errors.Is(err, server.ErrInUse):
		return &command.Error{Code: command.ExitMissing, Err: err}
	case errors.Is(err, server.ErrNotEmpty):
		return &command.Error{Code: command.ExitMissing, Err: err, Hint: "--replace moves it aside"}
	case errors.Is(err, server.ErrDamagedBackup):
		err = fmt.Errorf("%s: %w", r.source(), err)
		return &command.Error{Code: command.ExitData, Err: err, Hint: "nothing was changed"}
	}
	return &command.Error{Code: command.ExitSoftware, Err: err}
}
