package cli

// turnstile backup.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

// standard is the FILE that is standard input or output.
const standard = "-"

// backupJSON is what "turnstile backup --json" prints.
type backupJSON struct {
	File     string `json:"file"`
	Zxid     int64  `json:"zxid"`
	Made     string `json:"made"`
	Nodes    int64  `json:"nodes"`
	Sessions int64  `json:"sessions"`
	Bytes    int64  `json:"bytes"` // of records
}

func newBackupJSON(file string, info *server.BackupInfo) backupJSON {
	return backupJSON{
		File: file, Zxid: info.Zxid, Made: command.Timestamp(info.Made), Nodes: info.Nodes, Sessions: info.Sessions,
		Bytes: info.Size,
	}
}

// backup is a call of turnstile backup.
type backup struct {
	command.Access
	file string
}

func newBackup(app *command.App) *cobra.Command {
	b := &backup{Access: command.Access{App: app, Path: "/"}}
	cmd := &cobra.Command{
		Use:   "backup [flags] FILE",
		Short: "Write a backup of the embedded server, while it serves",
		Long: `Writes everything that a server has, as of one transaction, to FILE, or to standard output if FILE is -.
Clients go on meanwhile. FILE appears, or is replaced, when the backup is complete and has been read back.
It is a tar file with a manifest of SHA-256 sums: turnstile restore --check verifies it.

Only the embedded server (turnstile serve) makes backups; for Apache ZooKeeper see turnstile export. The backup
has what access lists protect, so the connection must come from a unix socket of the server, or be its
superuser's: zoo.cfg names one, by DigestAuthenticationProvider.superDigest, X509AuthenticationProvider.superUser or
superUser (docs/operating.md).

Exit codes: 0 done; 64 usage; 69 no server; 70 the server makes no backups, or is making one; 74 FILE cannot be
written; 77 access denied.`,
		Example: `  turnstile backup --connect unix:/run/turnstile/sock turnstile.tar
  turnstile backup --connect unix:/run/turnstile/sock - | zstd >turnstile.tar.zst`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			b.file, err = command.OneFile(cmd, args, "FILE")
			switch {
			case err != nil:
				return err
			case b.file == standard && b.AsJSON:
				return command.Usagef(cmd, "--json needs a FILE: standard output is the backup")
			case b.file == standard && command.IsTerminal(app.Stdout):
				return command.Usagef(cmd, "the backup is not for a terminal: name a FILE")
			}
			return b.With(cmd.Context(), b.make)
		},
	}
	b.Flags(cmd, "a JSON object")
	return cmd
}

func (b *backup) make(ctx context.Context, client *zk.Client) error {
	if b.file != standard {
		return b.write(ctx, client)
	}
	out := bufio.NewWriterSize(b.App.Stdout, 1<<20)
	info, err := b.copy(ctx, client, out)
	if err != nil {
		return err
	}
	if err := command.OutputError(out.Flush()); err != nil {
		return err
	}
	b.App.Say("%s as of zxid %d", command.Plural(int(info.Nodes), "node"), info.Zxid)
	return nil
}

// copy writes the backup. All of its pieces come over one connection: the server refuses others.
func (b *backup) copy(ctx context.Context, client *zk.Client, w io.Writer) (*server.BackupInfo, error) {
	sess, err := client.Session(ctx)
	if err != nil {
		return nil, err
	}
	var asking error
	info, err := server.WriteBackup(w, func(n int) ([]byte, error) {
		var data []byte
		data, _, asking = sess.Get(ctx, server.BackupPath+"/"+strconv.Itoa(n))
		return data, asking
	})
	switch {
	case err == nil:
		return info, nil
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case asking == nil:
		return nil, b.cannotWrite(err)
	}
	return nil, refusedBackup(asking)
}

// cannotWrite is the error of a backup that cannot be written.
func (b *backup) cannotWrite(err error) error {
	if b.file == standard {
		return command.OutputError(err)
	}
	return &command.Error{Code: command.ExitOutput, Err: fmt.Errorf("%s: no backup was written: %w", b.file, err)}
}

// refusedBackup says why a server has not sent a piece.
func refusedBackup(err error) error {
	e := &command.Error{Code: command.ExitSoftware, Err: err}
	switch {
	case errors.Is(err, zk.NoAuth):
		e = superuserOnly("makes backups")
	case errors.Is(err, zk.NoNode):
		e.Err = errors.New("this server makes no backups")
		e.Hint = "only turnstile serve does, without a chroot in --connect; " +
			"turnstile export copies a tree of any server"
	case errors.Is(err, zk.Unimplemented):
		e.Err = errors.New("this server keeps its state in memory, and makes no backups")
	case errors.Is(err, zk.ThrottledOp):
		e.Err = errors.New("the server is making another backup")
	case errors.Is(err, zk.BadArguments):
		e.Code, e.Err = command.ExitNoServer, errors.New("the connection was lost meanwhile")
		e.Hint = "begin again"
	default:
		return err
	}
	return e
}

// write writes the backup to a file that is only there when it is complete and was read back.
func (b *backup) write(ctx context.Context, client *zk.Client) error {
	info, err := os.Stat(b.file)
	if err == nil && !info.Mode().IsRegular() {
		return b.writeTo(ctx, client)
	}
	dir := filepath.Dir(b.file)
	f, err := os.CreateTemp(dir, "."+filepath.Base(b.file)+".*") // which only this user may read
	if err != nil {
		return b.cannotWrite(err)
	}
	done := false
	defer func() {
		if !done {
			_ = f.Close()
			_ = os.Remove(f.Name()) // it would be of no use
		}
	}()
	made, err := b.copy(ctx, client, &steadyFile{File: f})
	if err != nil {
		return err
	}
	if err = f.Sync(); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = server.CheckBackup(bufio.NewReaderSize(f, 1<<20))
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), b.file)
	}
	if err != nil {
		return b.cannotWrite(err)
	}
	done = true
	b.App.Did.Store(true)
	if err := syncDir(dir); err != nil {
		return b.cannotWrite(err)
	}
	return b.report(made)
}

// steadyFile is a file that is written to the disk bit by bit. All of it at the end would make the server wait, if the
// file is on the same disk: a write would take more than 50 ms.
type steadyFile struct {
	*os.File
	since int // bytes since the last sync
}

// Write writes to the file.
func (f *steadyFile) Write(b []byte) (int, error) {
	const step = 4 << 20
	n, err := f.File.Write(b)
	if f.since += n; err == nil && f.since >= step {
		f.since = 0
		err = f.Sync()
	}
	return n, err
}

// syncDir makes the names in a directory durable, where that can be asked for.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeTo writes the backup to a pipe or a device.
func (b *backup) writeTo(ctx context.Context, client *zk.Client) error {
	f, err := openFile(ctx, b.file, os.O_WRONLY)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return b.cannotWrite(err)
	}
	made, err := b.copy(ctx, client, f)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = b.cannotWrite(cerr)
	}
	if err != nil {
		return err
	}
	return b.report(made)
}

// openFile opens a file. The end of ctx ends what may have to wait for the other end of a pipe: the open, and later
// reads and writes.
func openFile(ctx context.Context, name string, flag int) (*os.File, error) {
	var f *os.File
	var err error
	opened := make(chan struct{})
	go func() { // if ctx ends, this process soon does, too
		defer close(opened)
		f, err = os.OpenFile(name, flag, 0)
	}()
	select {
	case <-opened:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err == nil {
		context.AfterFunc(ctx, func() { _ = f.Close() })
	}
	return f, err
}

func (b *backup) report(info *server.BackupInfo) error {
	return b.App.Report(b.AsJSON, newBackupJSON(b.file, info), "%s: %s as of zxid %d\n", b.file,
		command.Plural(int(info.Nodes), "node"), info.Zxid)
}
