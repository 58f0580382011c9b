package house_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/seed-a3166700/turnstile"

// A rule says what the non-test code of a package may import, besides the standard library.
type rule struct {
	path    string   // of the package in this module; a trailing /... includes the packages below it
	ours    []string // packages of this module, in the same notation
	foreign []string // other modules
}

// rules lists what may be imported, from the lowest package up. What is not listed is not allowed. That only the server
// sees its tree and its store, only queue its segments and claims, and only the command line its parts, is Go's own
// rule.
var rules = []rule{
	{path: "internal/jute"},
	{path: "internal/wire", ours: []string{"internal/jute"}},
	{path: "internal/lockfile"},
	{path: "internal/certfile"},
	{path: "internal/exposition"},
	{path: "internal/fold"},
	{path: "internal/both"},
	{path: "internal/stuck"},

	{path: "server/internal/tree", ours: []string{"internal/wire", "internal/jute"}},
	{path: "server/internal/backup"},
	{path: "server/internal/javafile"},
	{
		path: "server/internal/store",
		ours: []string{
			"internal/lockfile", "server/internal/tree", "server/internal/backup", "internal/wire", "internal/jute",
		},
		foreign: []string{"github.com/cockroachdb/pebble/v2"},
	},
	{
		path:    "server",
		ours:    []string{"internal/exposition", "server/internal/...", "internal/wire", "internal/jute"},
		foreign: []string{"github.com/cockroachdb/pebble/v2"}, // the file system that the store is opened on
	},
	{path: "server/zoocfg", ours: []string{"server", "server/internal/javafile", "internal/certfile"}},

	{path: "zk", ours: []string{"internal/both", "internal/certfile", "internal/wire", "internal/jute"}},
	{path: "zktest", ours: []string{"server", "zk", "internal/wire", "internal/jute"}},
	{path: "internal/attempt", ours: []string{"zk"}},
	{path: "internal/line", ours: []string{"zk", "internal/attempt"}},
	{path: "internal/waits", ours: []string{"zk", "internal/attempt", "internal/line", "internal/stuck"}},
	{
		path: "lock",
		ours: []string{"zk", "internal/attempt", "internal/both", "internal/line", "internal/stuck", "internal/waits"},
	},
	{
		path: "elect",
		ours: []string{
			"zk", "internal/attempt", "internal/both", "internal/line", "internal/stuck", "internal/waits", "lock",
		},
	},
	{path: "fence", ours: []string{"zk", "internal/attempt"}},
	{path: "barrier", ours: []string{"zk", "internal/attempt", "internal/line"}},
	{path: "counter", ours: []string{"zk", "internal/attempt"}},
	{path: "cache", ours: []string{"zk", "internal/attempt"}},
	{path: "member", ours: []string{"zk", "internal/attempt", "internal/line", "cache"}},
	{path: "discovery", ours: []string{"zk", "internal/attempt", "cache", "member"}},
	{path: "discovery/roundtrip", ours: []string{"discovery"}},
	{path: "queue/internal/segment", ours: []string{"zk", "internal/attempt"}},
	{path: "queue/internal/claims", ours: []string{"zk", "queue/internal/segment"}},
	{
		path: "queue",
		ours: []string{
			"zk", "internal/attempt", "internal/both", "internal/line", "queue/internal/claims",
			"queue/internal/segment",
		},
	},
	{path: "internal/outcome", ours: []string{"zk", "lock", "elect"}},
	{path: "queue/classic", ours: []string{"zk", "internal/attempt", "internal/line", "queue"}}, // queue for its errors

	{path: "internal/survey", ours: []string{"zk", "internal/attempt", "internal/line", "lock"}},
	{path: "internal/words"},
	{
		path: "internal/doctor", ours: []string{"zk", "internal/survey", "internal/words"},
		foreign: []string{"golang.org/x/sync"},
	},
	{path: "internal/lincheck", foreign: []string{"github.com/anishathalye/porcupine"}},
	{path: "internal/verify", ours: []string{"zk", "counter", "lock", "internal/attempt", "internal/lincheck"}},
	{path: "internal/measure", ours: []string{"lock"}},
	{path: "cmd/turnstile/internal/supervise", foreign: []string{"golang.org/x/sys"}},
	{
		path:    "cmd/turnstile/internal/ownserver",
		ours:    []string{"internal/lockfile"},
		foreign: []string{"golang.org/x/sys"},
	},
	{
		path: "cmd/turnstile/internal/ensemble", ours: []string{"internal/survey", "lock", "queue", "zk"},
		foreign: []string{"golang.org/x/sync"},
	},
	{
		path: "cmd/turnstile/internal/dashboard",
		ours: []string{
			"cmd/turnstile/internal/cli/command", "cmd/turnstile/internal/ensemble", "internal/certfile",
			"internal/survey", "lock", "zk",
		},
		foreign: []string{"github.com/coreos/go-oidc/v3", "golang.org/x/crypto", "golang.org/x/oauth2"},
	},
	{
		path: "cmd/turnstile/internal/top",
		ours: []string{
			"cmd/turnstile/internal/cli/command", "cmd/turnstile/internal/ensemble", "internal/survey", "lock",
		},
		foreign: []string{
			"charm.land/bubbletea/v2", "charm.land/lipgloss/v2", "github.com/charmbracelet/x/ansi",
		},
	},
	{
		path: "cmd/turnstile/...",
		ours: []string{
			"cmd/turnstile/internal/...",
			"internal/certfile", "internal/doctor", "internal/exposition", "internal/fold", "internal/lincheck",
			"internal/measure", "internal/stuck", "internal/survey", "internal/verify", "internal/waits",
			"internal/words",
			"zk", "lock", "elect", "queue", "server", "server/zoocfg", "barrier", "counter", "cache", "member",
			"discovery",
		},
		foreign: []string{
			"github.com/spf13/cobra", "github.com/spf13/pflag",
			"golang.org/x/sync", "golang.org/x/sys", "golang.org/x/term",
			"charm.land/bubbletea/v2", "github.com/charmbracelet/colorprofile", // the screen of top
		},
	},
	{
		path: "examples/...",
		ours: []string{
			"zk", "lock", "elect", "fence", "queue", "queue/classic", "barrier", "counter", "cache", "member",
			"discovery", "zktest",
		},
	},

	// What only tests use.
	{path: "internal/test/waiter", ours: []string{"zk", "lock"}},
	{
		path:    "internal/test/...",
		ours:    []string{"zk", "server"},
		foreign: []string{"github.com/anishathalye/porcupine", "golang.org/x/sys"},
	},
	{
		path: "test/...",
		ours: []string{
			"zk", "lock", "elect", "queue", "barrier", "counter", "cache", "member", "discovery", "server", "zktest",
			"internal/...",
		},
		foreign: []string{"github.com/anishathalye/porcupine", "golang.org/x/sys"},
	},
}

// users are the packages that users' programs import. They depend on nothing but the standard library.
var users = []string{
	"zk", "lock", "elect", "fence", "queue", "queue/classic", "cache", "member", "discovery",
	"discovery/roundtrip", "counter", "barrier",
}

type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
	Module     *struct{ Path string }
}

func TestPackagesImportWhatTheirRulesAllow(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			packages := list(t, goos)
			for path, p := range packages {
				name, ours := within(path)
				if !ours {
					continue
				}
				at := slices.IndexFunc(rules, func(r rule) bool { return covers(r.path, name) })
				if at < 0 {
					t.Errorf("%s has no rule: add it to rules, with what it may import", name)
					continue
				}
				for _, imported := range p.Imports {
					if imported != "C" && !allowed(rules[at], packages[imported]) {
						t.Errorf("%s imports %s, which its rule does not allow", name, imported)
					}
				}
			}
		})
	}
}

func TestLibraryDependsOnTheStandardLibraryAlone(t *testing.T) {
	t.Parallel()
	packages := list(t, "linux")
	for _, user := range users {
		p, ok := packages[module+"/"+user]
		if !ok {
			t.Errorf("no package %s", user)
			continue
		}
		for _, dep := range p.Deps {
			if _, ours := within(dep); !ours && !packages[dep].Standard {
				t.Errorf("%s depends on %s", user, dep)
			}
		}
	}
}

// list returns the module's packages and all that their non-test code depends on, as built for goos.
func list(t *testing.T, goos string) map[string]listed {
	t.Helper()
	const fields = "-json=ImportPath,Standard,Imports,Deps,Module"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", fields, module+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	packages := make(map[string]listed)
	for decoder := json.NewDecoder(out); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages[p.ImportPath] = p
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("go list: %v", err)
	}
	return packages
}

// within returns a package's path below the module, and whether it belongs to the module.
func within(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// covers reports whether a pattern in the notation of rule names the package.
func covers(pattern, name string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == below || strings.HasPrefix(name, below+"/")
	}
	return pattern == name
}

func allowed(r rule, p listed) bool {
	if p.Standard {
		return true
	}
	if name, ours := within(p.ImportPath); ours {
		return slices.ContainsFunc(r.ours, func(pattern string) bool { return covers(pattern, name) })
	}
	return p.Module != nil && slices.Contains(r.foreign, p.Module.Path)
}
