package packages_test

// A small root directory to install packages into.

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// systemctl knows which units run by the files in /active, and writes what it does to them into /effects.
const systemctl = `#!/bin/sh
verb=
[ ! -e /broken ] || exit 1
for word; do
  case $word in --*) continue ;; esac
  if [ -z "$verb" ]; then
    verb=$word
    [ "$verb" != daemon-reload ] || echo "$verb" >>/effects
    continue
  fi
  case $verb in
  stop | try-restart)
    for unit in /active/*; do
      case ${unit##*/} in $word)
        echo "$verb ${unit##*/}" >>/effects
        [ "$verb" != stop ] || rm "$unit" ;;
      esac
    done ;;
  *) echo "$verb $word" >>/effects ;;
  esac
done
`

// policy is Debian's way to call systemctl.
const policy = "#!/bin/sh\necho policy >>/effects\nexec systemctl \"$@\"\n"

// A root is a directory that looks like a system's root to the scripts of a package.
type root struct {
	t   *testing.T
	dir string
}

// newRoot returns a root with a shell and what the scripts call. Its system is run by systemd.
func newRoot(t *testing.T) root {
	t.Helper()
	r := root{t, t.TempDir()}
	for _, program := range []string{"sh", "rm", "systemd-sysusers"} {
		r.copy(program)
	}
	for _, dir := range []string{
		"active", "run/systemd/system", "etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "tmp",
	} {
		r.mkdir(dir)
	}
	r.write("var/lib/dpkg/status", "", 0o644)
	r.write("dev/null", "", 0o666) // of the device, only that it can be written to matters
	r.write("usr/bin/systemctl", systemctl, 0o755)
	return r
}

// needSuperuser skips the test, outside CI, if it cannot install packages.
func needSuperuser(t *testing.T) {
	t.Helper()
	switch {
	case os.Geteuid() == 0:
	case os.Getenv("CI") == "true":
		t.Fatal("run the tests as root: only it can install a package")
	default:
		t.Skip("only the superuser can install a package")
	}
}

// copy copies a program and the libraries that it needs.
func (r root) copy(program string) {
	r.t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := exec.CommandContext(r.t.Context(), "ldd", path).Output()
	if err != nil {
		r.t.Fatal(program, err)
	}
	for _, file := range append(regexp.MustCompile(`/\S+`).FindAllString(string(out), -1), path) {
		text, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		if file == path {
			file = "/usr/bin/" + program
		}
		r.write(file, string(text), 0o755)
	}
	if program == "sh" {
		text := r.read("usr/bin/sh")
		r.write("bin/sh", text, 0o755)
	}
}

func (r root) mkdir(dir string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r root) write(file, text string, mode os.FileMode) {
	r.t.Helper()
	r.mkdir(filepath.Dir(file))
	if err := os.WriteFile(filepath.Join(r.dir, file), []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

func (r root) remove(file string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, file)); err != nil {
		r.t.Fatal(err)
	}
}

func (r root) read(file string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

func (r root) has(file string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, file))
	return err == nil
}

// run runs a program of this machine and returns what it prints.
func (r root) run(name string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// starts makes units run.
func (r root) starts(units ...string) {
	for _, unit := range units {
		r.write("active/"+unit, "", 0o644)
	}
}

// wantEffects checks what systemd was told since the last call.
func (r root) wantEffects(want ...string) {
	r.t.Helper()
	var got []string
	if r.has("effects") {
		got = strings.Split(strings.TrimSpace(r.read("effects")), "\n")
		r.remove("effects")
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("got effects %q, want %q", got, want)
	}
}
