package cli

// turnstile version.

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

// versionJSON is what "turnstile version --json" prints.
type versionJSON struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func newVersion(app *command.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  turnstile version --json",
		Args:    command.ExactArgs(0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			return app.Report(asJSON, v, "%s\n", v.text())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (docs/cli-json.md)")
	return cmd
}

func (v versionJSON) text() string {
	return fmt.Sprintf("turnstile %s %s %s/%s", v.Version, v.Go, v.OS, v.Arch)
}

// thisVersion reads what the Go toolchain recorded in the binary.
func thisVersion() versionJSON {
	v := versionJSON{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
