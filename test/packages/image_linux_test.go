package packages_test

// The image, tried without an engine: its layer is unpacked, and its program is process 1 of namespaces of its own.

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// containerArg makes the test binary the first process of a container, and then its program: "ROOT PROGRAM ARG...".
const containerArg = "become-container"

// becomeContainer does what an engine does after it has made the namespaces.
func becomeContainer(root string, argv []string) error {
	var user [2]int
	for i, part := range strings.Split(os.Getenv("CONTAINER_USER"), ":") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return err
		}
		user[i] = n
	}
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", filepath.Join(root, "proc"), "proc", 0, ""),
		unix.Chroot(root),
		unix.Chdir("/"),
		unix.Setgroups(nil),
		unix.Setgid(user[1]),
		unix.Setuid(user[0]),
		unix.Exec(argv[0], argv, strings.Split(os.Getenv("CONTAINER_ENV"), "\n")),
	)
}

// An ociImage is an image whose layer is unpacked.
type ociImage struct {
	t      *testing.T
	root   string
	config struct {
		Architecture, OS string
		Config           struct {
			User, StopSignal     string
			Entrypoint, Cmd, Env []string
			Volumes              map[string]struct{}
			Labels               map[string]string
		}
	}
}

// unpack reads an image as the specification says.
func unpack(t *testing.T, file string) *ociImage {
	t.Helper()
	blobs := readTar(t, file)
	img := &ociImage{t: t, root: t.TempDir()}
	if err := os.Chmod(img.root, 0o755); err != nil { // another user runs in it
		t.Fatal(err)
	}
	type descriptor struct{ MediaType, Digest string }
	var index struct{ Manifests []descriptor }
	decode(t, blobs["index.json"], &index)
	blob := func(d descriptor, mediaType string) []byte {
		if d.MediaType != mediaType {
			t.Errorf("got %s, want %s", d.MediaType, mediaType)
		}
		return blobs["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	}
	if len(index.Manifests) != 1 || len(blobs["oci-layout"]) == 0 {
		t.Fatalf("got %+v, and files %q", index, blobs["oci-layout"])
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, blob(index.Manifests[0], "application/vnd.oci.image.manifest.v1+json"), &manifest)
	decode(t, blob(manifest.Config, "application/vnd.oci.image.config.v1+json"), &img.config)
	if len(manifest.Layers) != 1 {
		t.Fatalf("got %d layers", len(manifest.Layers))
	}
	img.extract(blob(manifest.Layers[0], "application/vnd.oci.image.layer.v1.tar+gzip"))
	for _, dir := range []string{"proc", "dev"} { // an engine makes both
		if err := os.Mkdir(filepath.Join(img.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	null := filepath.Join(img.root, "dev/null")
	err := errors.Join(unix.Mknod(null, unix.S_IFCHR, int(unix.Mkdev(1, 3))), unix.Chmod(null, 0o666))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func decode(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

func readTar(t *testing.T, file string) map[string][]byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := make(map[string][]byte)
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// extract unpacks the layer with its owners.
func (img *ociImage) extract(layer []byte) {
	img.t.Helper()
	z, err := gzip.NewReader(strings.NewReader(string(layer)))
	if err != nil {
		img.t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			img.t.Fatal(err)
		}
		path := filepath.Join(img.root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.Mkdir(path, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		err = errors.Join(err, os.Chown(path, h.Uid, h.Gid), os.Chmod(path, h.FileInfo().Mode()))
		if err != nil {
			img.t.Fatal(err)
		}
	}
}

// run makes a container of the image, whose first process is its program with these arguments.
func (img *ociImage) run(args ...string) *exec.Cmd {
	img.t.Helper()
	argv := append(slices.Clone(img.config.Config.Entrypoint), args...)
	cmd := exec.CommandContext(img.t.Context(), os.Args[0], append([]string{containerArg, img.root}, argv...)...)
	cmd.Env = []string{
		"CONTAINER_USER=" + img.config.Config.User, "CONTAINER_ENV=" + strings.Join(img.config.Config.Env, "\n"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	cmd.Stderr = new(bytes.Buffer) // the test's output would be mixed with that of others
	return cmd
}

// output is run, and returns what the program prints. It fails the test if the program fails.
func (img *ociImage) output(args ...string) string {
	img.t.Helper()
	cmd := img.run(args...)
	out, err := cmd.Output()
	if err != nil {
		img.t.Fatalf("%q: %v\n%s%v", args, err, out, cmd.Stderr)
	}
	return string(out)
}

// newImage returns an image of its own for the test.
func newImage(t *testing.T) *ociImage {
	t.Helper()
	needSuperuser(t)
	b, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, b.image)
}

// serve runs the image's server as its defaults say, but on a free port of this machine, and returns its address.
func (img *ociImage) serve() (string, *exec.Cmd) {
	t := img.t
	t.Helper()
	args := slices.Clone(img.config.Config.Cmd)
	i := slices.Index(args, ":2181")
	if i < 0 {
		t.Fatalf("got %q, which serves at another port than 2181", args)
	}
	args[i] = "127.0.0.1:0"
	cmd := img.run(args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	// Not process 1 itself: that starts the server and reaps what is left behind.
	if err != nil {
		t.Fatalf("got %q %v, and then the server ended: %v\n%v", line, err, cmd.Wait(), cmd.Stderr)
	}
	if len(words) < 5 || words[0] != "serving" || !strings.Contains(line, "data in /data/turnstile") {
		t.Fatalf("got %q", line)
	}
	return words[1], cmd
}

func TestImageServesAndStops(t *testing.T) {
	t.Parallel()
	img := newImage(t)
	addr, server := img.serve()
	img.output("create", "--connect", addr, "/a", "text")
	stop := func() {
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := server.Wait(); err != nil {
			t.Errorf("got %v after SIGTERM, want exit code 0", err)
		}
	}
	stop()
	addr, server = img.serve()
	if out := img.output("get", "--connect", addr, "/a"); out != "text" {
		t.Errorf("got %q after a restart", out)
	}
	stop()
	err := filepath.WalkDir(filepath.Join(img.root, "data"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 65532 {
			t.Errorf("%s belongs to user %d, want 65532", path, owner)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Processes that a command leaves behind become children of process 1, which is turnstile.
func TestImageReapsWhatACommandLeaves(t *testing.T) {
	t.Parallel()
	img := newImage(t)
	build := exec.CommandContext(t.Context(),
		"go", "build", "-o", filepath.Join(img.root, "orphan"), "./testdata/orphan")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	addr, _ := img.serve()
	if out := img.output("lock", "--connect", addr, "/jobs", "--", "/orphan"); !strings.HasPrefix(out, "reaped ") {
		t.Errorf("got %q", out)
	}
}

func TestImageSaysHowItRuns(t *testing.T) {
	t.Parallel()
	img := newImage(t)
	cfg := img.config.Config
	if img.config.OS != "linux" || cfg.User != "65532:65532" || cfg.StopSignal != "SIGTERM" {
		t.Errorf("got %+v", img.config)
	}
	if _, ok := cfg.Volumes["/data"]; !ok {
		t.Errorf("got volumes %v", cfg.Volumes)
	}
	for _, label := range []string{"version", "revision", "licenses", "source", "title"} {
		if cfg.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("no label %s", label)
		}
	}
	authorities, err := os.ReadFile(filepath.Join(img.root, "etc/ssl/certs/ca-certificates.crt"))
	if n := strings.Count(string(authorities), "BEGIN CERTIFICATE"); err != nil || n < 50 {
		t.Errorf("got %d authorities, %v", n, err)
	}
	for file, mode := range map[string]fs.FileMode{
		"usr/bin/turnstile": 0o755, "data": fs.ModeDir | 0o700, "tmp": fs.ModeDir | fs.ModeSticky | 0o777,
	} {
		info, err := os.Stat(filepath.Join(img.root, file))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: got %v %v, want mode %v", file, info, err, mode)
		}
	}
	// Commands that name no server start one in the home directory.
	img.output("lock", "/jobs", "--", "/usr/bin/turnstile", "version")
}
