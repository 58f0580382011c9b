// Command image writes the container image of turnstile, as a tar of an OCI layout: "make image" runs it. The same
// arguments give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is that of the processes, and of their data; no machine has it.
const user = 65532

// describes is what the image says about itself.
type describes struct {
	binary, license   string
	arch              string
	version, revision string
	created           time.Time
}

func main() {
	var d describes
	var epoch int64
	out := flag.String("o", "", "`file` to write")
	flag.StringVar(&d.binary, "binary", "", "static `program`")
	flag.StringVar(&d.license, "license", "", "`file` of the license")
	flag.StringVar(&d.arch, "arch", "amd64", "processor of the program")
	flag.StringVar(&d.version, "version", "", "version")
	flag.StringVar(&d.revision, "revision", "", "commit")
	flag.Int64Var(&epoch, "epoch", 0, "time of the commit, in `seconds`")
	flag.Parse()
	d.created = time.Unix(epoch, 0).UTC()
	if err := write(*out, d); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write writes the image as a tar of an OCI layout.
func write(out string, d describes) error {
	img, err := build(d)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "turnstile-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	err = path.AppendImage(img, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: d.arch}),
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "turnstile:" + tag(d.version)}))
	if err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pack(f, dir, d.created); err != nil {
		return err
	}
	return f.Close()
}

// tag makes a tag of a version: a plus is not allowed in one.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// build makes the image: one layer, and how to run it.
func build(d describes) (v1.Image, error) {
	content, err := files(d)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: d.created}, CreatedBy: "make image",
	}})
	if err != nil {
		return nil, err
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	cfg.Architecture, cfg.OS, cfg.Created = d.arch, "linux", v1.Time{Time: d.created}
	cfg.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{"/usr/bin/turnstile"},
		Cmd:          []string{"serve", "--data", "/data/turnstile", "--listen", ":2181"},
		Env:          []string{"PATH=/usr/bin", "HOME=/data"},
		WorkingDir:   "/",
		Volumes:      map[string]struct{}{"/data": {}},
		ExposedPorts: map[string]struct{}{"2181/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "turnstile",
			"org.opencontainers.image.description": "Distributed locks, elections and queues over ZooKeeper",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://github.com/seed-a3166700/turnstile",
			"org.opencontainers.image.version":     d.version,
			"org.opencontainers.image.revision":    d.revision,
			"org.opencontainers.image.created":     d.created.Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(img, cfg)
}

// files returns the layer: the program, certificates of public authorities, names for the user, and places to write.
func files(d describes) ([]byte, error) {
	program, err := os.ReadFile(d.binary)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(d.license)
	if err != nil {
		return nil, err
	}
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // trusted for some certificates only, which a file of certificates cannot say
		}
		if err := pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/:/\nturnstile:x:%d:%d:turnstile:/data:/\n", user, user)
	group := fmt.Sprintf("root:x:0:\nturnstile:x:%d:\n", user)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	dir := func(name string, mode int64, owner int) error {
		return w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: d.created,
		})
	}
	file := func(name string, mode int64, content []byte) error {
		err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: d.created,
		})
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	}
	for _, step := range []func() error{
		func() error { return dir("data/", 0o700, user) },
		func() error { return dir("etc/", 0o755, 0) },
		func() error { return file("etc/group", 0o644, []byte(group)) },
		func() error { return file("etc/passwd", 0o644, []byte(passwd)) },
		func() error { return dir("etc/ssl/", 0o755, 0) },
		func() error { return dir("etc/ssl/certs/", 0o755, 0) },
		func() error { return file("etc/ssl/certs/ca-certificates.crt", 0o644, authorities.Bytes()) },
		func() error { return dir("tmp/", 0o1777, 0) },
		func() error { return dir("usr/", 0o755, 0) },
		func() error { return dir("usr/bin/", 0o755, 0) },
		func() error { return file("usr/bin/turnstile", 0o755, program) },
		func() error { return dir("usr/share/", 0o755, 0) },
		func() error { return dir("usr/share/doc/", 0o755, 0) },
		func() error { return dir("usr/share/doc/turnstile/", 0o755, 0) },
		func() error { return file("usr/share/doc/turnstile/copyright", 0o644, license) },
		w.Close,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// pack writes the files below dir as a tar, in the order of their names.
func pack(to io.Writer, dir string, created time.Time) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		err = w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)),
			ModTime: created,
		})
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
