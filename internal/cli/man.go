package cli

// Manual pages.

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (c *cli) man() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages into a directory",
		Example: "  turnstile man /usr/local/share/man/man1",
		Args:    exactArgs(1, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return usage(cmd, err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // pages of one version are the same on every day
			err := doc.GenManTree(root, &doc.GenManHeader{Title: "TURNSTILE", Section: "1", Source: "Turnstile", Manual: "Turnstile"}, args[0])
			if err != nil {
				return usage(cmd, fmt.Errorf("write man pages: %w", err))
			}
			return nil
		},
	}
}
