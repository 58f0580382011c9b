package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/peer"
)

// The contenders that are not written in Go: with locks, and with queues. Their workers know them by these names.
const (
	kindCurator       = "Curator"
	kindKazoo         = "kazoo"
	kindCuratorSimple = "CuratorSimple"
	kindCuratorQueue  = "CuratorQueue"
	kindKazooQueue    = "kazooQueue"
	kindKazooLocking  = "kazooLocking"
)

//go:embed foreign
var foreign embed.FS

// What Debian's packages install. A jar names what else it needs in its manifest, which java and javac follow.
const (
	python       = "/usr/bin/python3"
	kazooPackage = "/usr/lib/python3/dist-packages/kazoo/__init__.py"
	zookeeperJar = "/usr/share/java/zookeeper.jar"
	curatorJar   = "/usr/share/java/curator-recipes.jar"
	quietJar     = "/usr/share/java/slf4j-nop.jar"
)

func isCurator(kind string) bool {
	return kind == kindCurator || kind == kindCuratorSimple || kind == kindCuratorQueue
}

func isKazoo(kind string) bool {
	return kind == kindKazoo || kind == kindKazooQueue || kind == kindKazooLocking
}

// lacks says what a contender of that kind needs that is not installed, "" if all is there.
func lacks(kind string) string {
	switch {
	case isCurator(kind):
		return peer.Missing("javac", curatorJar, zookeeperJar)
	case isKazoo(kind):
		return peer.Missing(python, kazooPackage)
	default:
		return ""
	}
}

// toolbox is what worker processes are started with: their programs, made ready once.
type toolbox struct {
	dir string

	mu      sync.Mutex // guards what follows
	sources string     // of the foreign workers; empty until they are there
	classes string     // of the Java worker; empty until they are compiled
}

// command returns the program and the arguments of a worker.
func (b *toolbox) command(ctx context.Context, kind string, p *plan) (program string, args []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isCurator(kind) || isKazoo(kind) {
		if err := b.unpack(); err != nil {
			return "", nil, err
		}
	}
	switch {
	case isCurator(kind):
		if err := b.compile(ctx); err != nil {
			return "", nil, err
		}
		args = []string{"-Xmx1000m", "-Xss256k", "-XX:+UseSerialGC"}
		if p.packet > 0 {
			args = append(args, "-Djute.maxbuffer="+strconv.Itoa(p.packet))
		}
		path := strings.Join([]string{zookeeperJar, curatorJar, quietJar, b.classes}, ":")
		args = append(args, "-cp", path, "CuratorWorker")
		return "java", append(args, p.foreign(kind)...), nil
	case isKazoo(kind):
		return python, append([]string{filepath.Join(b.sources, "kazoo_worker.py")}, p.foreign(kind)...), nil
	default:
		exe, err := os.Executable()
		return exe, append([]string{"worker", kind}, p.args()...), err
	}
}

func (b *toolbox) unpack() error {
	if b.sources != "" { // once: a worker may be reading them
		return nil
	}
	if err := os.CopyFS(b.dir, foreign); err != nil {
		return err
	}
	b.sources = filepath.Join(b.dir, "foreign")
	return nil
}

func (b *toolbox) compile(ctx context.Context) error {
	if b.classes != "" {
		return nil
	}
	sources, err := filepath.Glob(filepath.Join(b.sources, "*.java"))
	if err != nil {
		return err
	}
	classes := filepath.Join(b.dir, "classes")
	out, err := exec.CommandContext(ctx, "javac", append([]string{"-d", classes, "-cp", zookeeperJar + ":" + curatorJar}, sources...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("javac: %w\n%s", err, out)
	}
	b.classes = classes
	return nil
}
