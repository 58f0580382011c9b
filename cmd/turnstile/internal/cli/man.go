package cli

// Manual pages.

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages into a directory",
		Example: "  turnstile man /usr/local/share/man/man1",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := command.OneFile(cmd, args, "DIR")
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return command.Usage(cmd, err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // pages of one version are the same on every day
			header := &doc.GenManHeader{Title: "TURNSTILE", Section: "1", Source: "Turnstile", Manual: "Turnstile"}
			if err := doc.GenManTree(root, header, dir); err != nil {
				return command.Usagef(cmd, "write man pages: %w", err)
			}
			return nil
		},
	}
}
