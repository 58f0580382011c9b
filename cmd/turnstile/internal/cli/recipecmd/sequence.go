package recipecmd

// turnstile sequence.

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/zk"
)

// idJSON is what "turnstile sequence next --json" prints for an id.
type idJSON struct {
	Path string `json:"path"`
	ID   int64  `json:"id"`
}

func newSequence(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "sequence",
		Short: "Get numbers that no other process gets",
		Long: `Gives out numbers that no other process gets from the same path: ids. Its node is that of a counter, with
the last number that was given out.`,
		Example: `  turnstile sequence next /ids
  turnstile sequence next /ids -n 100`,
	}, newSequenceNext(app))
}

func newSequenceNext(app *command.App) *cobra.Command {
	a := newCounterAccess(app)
	var count, block int64
	cmd := a.run(&cobra.Command{
		Use:   "next PATH",
		Short: "Print numbers that no other process gets",
		Long: `Prints a number that no other process gets, or -n of them, one a line. The first one of a path is 1. What
was claimed and could not be printed is lost: no number is ever given out twice.

Exit codes: 0; 1 the node holds no number, or there are no more; 64 usage; 69 no server, or it is unknown
whether numbers were claimed; 77 access denied.`,
		Example: `  id=$(turnstile sequence next /ids)
  turnstile sequence next /ids -n 100000 --block 10000 >ids`,
	}, "/ids", "one JSON object per number", func(ctx context.Context, client *zk.Client) error {
		switch {
		case count < 1:
			return misuse("-n must be at least 1")
		case block < 1:
			return misuse("--block must be at least 1")
		}
		return a.change(ctx, client, func(c *counter.Counter) error {
			for left := count; left > 0; {
				n := min(left, block)
				last, err := c.Add(ctx, n)
				if err != nil {
					return explain(ctx, err)
				}
				if err := a.printIDs(ctx, last-n+1, last); err != nil {
					return err
				}
				left -= n
			}
			return nil
		})
	})
	a.layoutFlag(cmd)
	flags := cmd.Flags()
	flags.Int64VarP(&count, "count", "n", 1, "how many numbers")
	flags.Int64Var(&block, "block", 1000, "how many numbers to claim with one write")
	a.Connection.ACLFlags(flags)
	return cmd
}

// printIDs prints the numbers from first to last, as far as it can until ctx ends.
func (a *counterAccess) printIDs(ctx context.Context, first, last int64) error {
	out := bufio.NewWriter(a.App.Stdout)
	a.App.Did.Store(true) // the numbers are given to us
	for i := range last - first + 1 {
		line := strconv.AppendInt(nil, first+i, 10)
		if a.AsJSON {
			var err error
			if line, err = json.Marshal(idJSON{a.Path, first + i}); err != nil {
				return command.Failed(err)
			}
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return a.App.OutputError(err)
		}
		if ctx.Err() != nil {
			return cmp.Or(a.App.OutputError(out.Flush()), context.Cause(ctx))
		}
	}
	return a.App.OutputError(out.Flush())
}
