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
		Args:    command.ExactArgs(1, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return command.Usage(cmd, err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // pages of one version are the same on every day
			header := &doc.GenManHeader{Title: "TURNSTILE", Section: "1", Source: "Turnstile", Manual: "Turnstile"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return command.Usagef(cmd, "write man pages: %w", err)
			}
			return nil
		},
	}
}
