package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/peer"
)

// The contenders that are not written in Go.
const (
	kindCurator = "Curator"
	kindKazoo   = "kazoo"
)

//go:embed foreign/CuratorWorker.java
var curatorWorker []byte

//go:embed foreign/kazoo_worker.py
var kazooWorker []byte

// What Debian's packages install. A jar names what else it needs in its manifest, which java and javac follow.
const (
	python       = "/usr/bin/python3"
	kazooPackage = "/usr/lib/python3/dist-packages/kazoo/__init__.py"
	zookeeperJar = "/usr/share/java/zookeeper.jar"
	curatorJar   = "/usr/share/java/curator-recipes.jar"
	quietJar     = "/usr/share/java/slf4j-nop.jar"
)

// lacks says what a contender of that kind needs that is not installed, "" if all is there.
func lacks(kind string) string {
	switch kind {
	case kindCurator:
		return peer.Missing("javac", curatorJar, zookeeperJar)
	case kindKazoo:
		return peer.Missing(python, kazooPackage)
	default:
		return ""
	}
}

// toolbox is what worker processes are started with: their programs, made ready once.
type toolbox struct {
	dir     string
	classes string // of the Java worker; empty until they are compiled
	script  string // the Python worker; empty until it is written
}

// command returns the program and the arguments of a worker.
func (b *toolbox) command(ctx context.Context, kind string, p *plan) (program string, args []string, err error) {
	switch kind {
	case kindCurator:
		if err := b.compile(ctx); err != nil {
			return "", nil, err
		}
		path := strings.Join([]string{zookeeperJar, curatorJar, quietJar, b.classes}, ":")
		return "java", append([]string{"-Xmx1000m", "-Xss256k", "-XX:+UseSerialGC", "-cp", path, "CuratorWorker"}, p.foreign()...), nil
	case kindKazoo:
		if b.script == "" { // once: a worker may be reading it
			script := filepath.Join(b.dir, "kazoo_worker.py")
			if err := os.WriteFile(script, kazooWorker, 0o600); err != nil {
				return "", nil, err
			}
			b.script = script
		}
		return python, append([]string{b.script}, p.foreign()...), nil
	default:
		exe, err := os.Executable()
		return exe, append([]string{"worker", kind}, p.args()...), err
	}
}

func (b *toolbox) compile(ctx context.Context) error {
	if b.classes != "" {
		return nil
	}
	source := filepath.Join(b.dir, "CuratorWorker.java")
	if err := os.WriteFile(source, curatorWorker, 0o600); err != nil {
		return err
	}
	classes := filepath.Join(b.dir, "classes")
	out, err := exec.CommandContext(ctx, "javac", "-d", classes, "-cp", zookeeperJar+":"+curatorJar, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("javac: %w\n%s", err, out)
	}
	b.classes = classes
	return nil
}
