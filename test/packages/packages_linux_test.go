package packages_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// built are the packages of "make package", and those of a later version with other settings.
type built struct{ dir, deb, rpm, laterDeb, laterRPM, image string }

// build returns packages that are built once for all tests.
var build = sync.OnceValues(func() (built, error) {
	dir, err := os.MkdirTemp("", "turnstile-packages-")
	if err != nil {
		return built{}, err
	}
	b := built{dir: dir}
	if out, err := exec.Command("../../.ci/package", dir, "deb", "rpm", "image").CombinedOutput(); err != nil {
		return b, fmt.Errorf("%w\n%s", err, out)
	}
	err = errors.Join(found(dir, "*.deb", &b.deb), found(dir, "*.rpm", &b.rpm), found(dir, "*.oci.tar", &b.image))
	if err != nil {
		return b, err
	}
	const env = "ops/package/turnstile.env"
	config, err := os.ReadFile("../../ops/package/nfpm.yaml")
	if err != nil {
		return b, err
	}
	text, err := os.ReadFile("../../" + env)
	if err != nil {
		return b, err
	}
	later := filepath.Join(dir, "later")
	if err := os.Mkdir(later, 0o755); err != nil {
		return b, err
	}
	changed := filepath.Join(later, "turnstile.env")
	if err := os.WriteFile(changed, append(text, "# new\n"...), 0o644); err != nil {
		return b, err
	}
	yaml := filepath.Join(later, "nfpm.yaml")
	if err := os.WriteFile(yaml, []byte(strings.ReplaceAll(string(config), env, changed)), 0o644); err != nil {
		return b, err
	}
	for _, packager := range []string{"deb", "rpm"} {
		cmd := exec.Command("go", "tool", "-modfile=tools.mod", "nfpm", "package",
			"--config", yaml, "--packager", packager, "--target", later)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "VERSION=999.0.0", "ARCH=amd64")
		if out, err := cmd.CombinedOutput(); err != nil {
			return b, fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err := found(later, "*.deb", &b.laterDeb); err != nil {
		return b, err
	}
	return b, found(later, "*.rpm", &b.laterRPM)
})

// found sets the path of the one file that has a name of the pattern.
func found(dir, pattern string, path *string) error {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("%s in %s: %q %w", pattern, dir, files, err)
	}
	*path = files[0]
	return nil
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == containerArg {
		fmt.Fprintln(os.Stderr, becomeContainer(os.Args[2], os.Args[3:])) // it returns only if that fails
		os.Exit(125)
	}
	code := m.Run()
	if b, _ := build(); b.dir != "" && code == 0 {
		_ = os.RemoveAll(b.dir) // of a failed test it may be of use
	}
	os.Exit(code)
}

// A manager is dpkg or rpm.
type manager struct {
	name       string
	old, later func(built) string
	install    func(r root, pkg string) // or upgrade
	remove     func(r root) string
	invoke     []string // what restarts and stops leave among the effects first
	completion string   // of zsh
}

var managers = []manager{
	{
		name:    "deb",
		old:     func(b built) string { return b.deb },
		later:   func(b built) string { return b.laterDeb },
		install: func(r root, pkg string) { r.dpkg("--force-confdef", "--force-confold", "--install", pkg) },
		remove:  func(r root) string { return r.dpkg("--remove", "turnstile") },
		invoke:  []string{"policy"}, completion: "vendor-completions",
	},
	{
		name:    "rpm",
		old:     func(b built) string { return b.rpm },
		later:   func(b built) string { return b.laterRPM },
		install: func(r root, pkg string) { r.rpm("--upgrade", pkg) },
		remove:  func(r root) string { return r.rpm("--erase", "turnstile") }, completion: "site-functions",
	},
}

func (r root) dpkg(args ...string) string {
	r.t.Helper()
	return r.run("dpkg", append([]string{"--root=" + r.dir}, args...)...)
}

func (r root) rpm(args ...string) string {
	r.t.Helper()
	return r.run("rpm", append([]string{"--root", r.dir, "--force-debian"}, args...)...)
}

// each runs a test with dpkg and with rpm, in a root where nothing is installed.
func each(t *testing.T, test func(t *testing.T, m manager, r root, b built)) {
	t.Helper()
	peer.Need(t, "rpm")
	peer.Need(t, "systemd-sysusers")
	needSuperuser(t)
	b, err := build()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range managers {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := newRoot(t)
			if m.name == "deb" {
				r.write("usr/bin/deb-systemd-invoke", policy, 0o755)
			}
			test(t, m, r, b)
		})
	}
}

const settings = "etc/turnstile/turnstile.env"

func TestInstallingEnablesAndStartsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manager, r root, b built) {
		m.install(r, m.old(b))
		r.wantEffects("daemon-reload")
		for _, file := range []string{
			"usr/lib/systemd/system/turnstile.service", "usr/lib/systemd/system/turnstile-elect@.service", settings,
			"etc/turnstile/elect.d",
			"usr/share/man/man1/turnstile-lock.1.gz", "usr/share/doc/turnstile/docs/operating.md",
			"usr/share/bash-completion/completions/turnstile", "usr/share/fish/vendor_completions.d/turnstile.fish",
			"usr/share/zsh/" + m.completion + "/_turnstile",
		} {
			if !r.has(file) {
				t.Errorf("%s is missing", file)
			}
		}
		if r.has("etc/systemd") {
			t.Error("a unit is enabled")
		}
		if users := r.read("etc/passwd"); !strings.Contains(users, "turnstile:") {
			t.Errorf("no user turnstile: %s", users)
		}
		// The shell has no library beside the program, which thus is static.
		version := r.run("chroot", r.dir, "/usr/bin/turnstile", "version")
		if !strings.HasPrefix(version, "turnstile ") {
			t.Errorf("got %q", version)
		}
	})
}

func TestUpgradeRestartsWhatRuns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manager, r root, b built) {
		m.install(r, m.old(b))
		r.starts("turnstile.service", "turnstile-elect@backup.service", "turnstile-elect@a.service", "other.service")
		r.wantEffects("daemon-reload")
		m.install(r, m.later(b))
		r.wantEffects(append(append([]string{"daemon-reload"}, m.invoke...), "try-restart turnstile.service",
			"try-restart turnstile-elect@a.service", "try-restart turnstile-elect@backup.service")...)
	})
}

func TestUpgradeStartsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manager, r root, b built) {
		m.install(r, m.old(b))
		r.wantEffects("daemon-reload")
		m.install(r, m.later(b))
		r.wantEffects(append([]string{"daemon-reload"}, m.invoke...)...)
	})
}

func TestSettingsSurviveAnUpgrade(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manager, r root, b built) {
		const mine = "TURNSTILE_CONNECT=zk1:2181\n"
		m.install(r, m.old(b))
		r.write(settings, mine, 0o640)
		m.install(r, m.later(b))
		if got := r.read(settings); got != mine {
			t.Errorf("got %q, want %q", got, mine)
		}
	})
}

// Who has not changed the settings gets those of the new version.
func TestSettingsThatAreNotChangedAreUpgraded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manager, r root, b built) {
		m.install(r, m.old(b))
		m.install(r, m.later(b))
		if got := r.read(settings); !strings.HasSuffix(got, "# new\n") {
			t.Errorf("got %q", got)
		}
	})
}

func TestRemovalStopsAndLeavesTheData(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manager, r root, b built) {
		m.install(r, m.old(b))
		r.write(settings, "TURNSTILE_CONNECT=zk1:2181\n", 0o640)
		r.write("var/lib/turnstile/CURRENT", "data", 0o600)
		r.starts("turnstile.socket", "turnstile.service", "turnstile-elect@backup.service", "other.service")
		r.wantEffects("daemon-reload")
		out := m.remove(r)
		r.wantEffects(append(append([]string{}, m.invoke...), "stop turnstile.socket", "stop turnstile.service",
			"stop turnstile-elect@backup.service", "disable turnstile.socket", "disable turnstile.service",
			"disable turnstile-dashboard.service", "disable turnstile-elect@.service", "daemon-reload")...)
		for _, file := range []string{"usr/bin/turnstile", "usr/lib/systemd/system/turnstile.service"} {
			if r.has(file) {
				t.Errorf("%s is still there", file)
			}
		}
		kept := settings
		if m.name == "rpm" {
			kept += ".rpmsave"
		}
		if !r.has(kept) {
			t.Error("the settings are gone")
		}
		if m.name == "deb" {
			if strings.Contains(out, "/var/lib/turnstile") {
				t.Errorf("got %q; the word about the data comes when the package is purged", out)
			}
			out = r.dpkg("--purge", "turnstile")
			r.wantEffects()
			if r.has(settings) {
				t.Error("purge leaves the settings")
			}
		}
		if !strings.Contains(out, "the data of the server stays in /var/lib/turnstile") {
			t.Errorf("got %q, want a word about the data", out)
		}
		if got := r.read("var/lib/turnstile/CURRENT"); got != "data" {
			t.Errorf("got %q", got)
		}
	})
}

// A package that cannot be configured or removed blocks all others.
func TestPackageWorksWithoutSystemd(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]func(r root){
		"in a container":     func(r root) { r.remove("run/systemd") },
		"no systemctl":       func(r root) { r.remove("run/systemd"); r.remove("usr/bin/systemctl") },
		"systemd that fails": func(r root) { r.write("broken", "", 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, m manager, r root, b built) {
				without(r)
				m.install(r, m.old(b))
				m.install(r, m.later(b))
				m.remove(r)
				if r.has("effects") && strings.Contains(r.read("effects"), "reload") {
					t.Error("systemd is told, which does not run")
				}
				if r.has("usr/bin/turnstile") {
					t.Error("the package is still there")
				}
			})
		})
	}
}

// What the scripts disable is what an administrator can have enabled: systemd's own program finds no link afterwards.
func TestRemovalDisablesEveryUnit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m manager, r root, b built) {
		peer.Need(t, "systemctl")
		m.install(r, m.old(b))
		units, err := filepath.Glob(filepath.Join(r.dir, "usr/lib/systemd/system/*"))
		if err != nil || len(units) == 0 {
			t.Fatal(units, err)
		}
		for _, unit := range units {
			name := strings.Replace(filepath.Base(unit), "@", "@backup", 1)
			r.run("systemctl", "--root="+r.dir, "enable", name)
		}
		r.wantEffects("daemon-reload")
		m.remove(r)
		// The package manager has removed the units, as it does after the script.
		m.install(r, m.old(b))
		for effect := range strings.SplitSeq(r.read("effects"), "\n") {
			if unit, ok := strings.CutPrefix(effect, "disable "); ok {
				r.run("systemctl", "--root="+r.dir, "disable", unit)
			}
		}
		links, err := filepath.Glob(filepath.Join(r.dir, "etc/systemd/system/*/*"))
		if err != nil || len(links) > 0 {
			t.Errorf("got links %q %v", links, err)
		}
	})
}

func TestPackagesAreReproducible(t *testing.T) {
	t.Parallel()
	needSuperuser(t) // no more packages are built than without this test
	b, err := build()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(),
		"../../.ci/package", dir, "deb", "rpm", "image").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{b.deb, b.rpm, b.image} {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s differs when it is built again", filepath.Base(file))
		}
	}
}

func TestScriptsAreCleanShell(t *testing.T) {
	t.Parallel()
	peer.Need(t, "shellcheck")
	scripts, err := filepath.Glob("../../ops/package/*.sh")
	if err != nil || len(scripts) != 3 {
		t.Fatal(scripts, err)
	}
	own, err := filepath.Glob("../../.ci/*")
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"-x", "-P", "../.."}, scripts, own)
	out, err := exec.CommandContext(t.Context(), "shellcheck", args...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The version is one that dpkg and rpm put before the release that follows.
func TestVersionIsBeforeTheNextRelease(t *testing.T) {
	t.Parallel()
	needSuperuser(t)
	b, err := build()
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`_(.*)_`).FindStringSubmatch(filepath.Base(b.deb))
	if version == nil {
		t.Fatal(b.deb)
	}
	if err := exec.CommandContext(t.Context(), "dpkg", "--validate-version", version[1]).Run(); err != nil {
		t.Errorf("%s: %v", version[1], err)
	}
	if err := exec.CommandContext(t.Context(),
		"dpkg", "--compare-versions", version[1], "lt", "999.0.0").Run(); err != nil {
		t.Errorf("%s: %v", version[1], err)
	}
}
