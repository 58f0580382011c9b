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

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// The contenders with locks and with queues that are not written in Go. Their workers know them by these names.
const (
	kindCurator       = "Curator"
	kindKazoo         = "kazoo"
	kindCuratorSimple = "CuratorSimple"
	kindCuratorQueue  = "CuratorQueue"
	kindKazooQueue    = "kazooQueue"
	kindKazooLocking  = "kazooLocking"
	kindCuratorLong   = "CuratorLong"
	kindCuratorCached = "CuratorCached"
	kindKazooCounter  = "kazooCounter"
	kindCuratorDouble = "CuratorDouble"
	kindKazooDouble   = "kazooDouble"
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

func isCurator(kind string) bool { return strings.HasPrefix(kind, kindCurator) }

func isKazoo(kind string) bool { return strings.HasPrefix(kind, kindKazoo) }

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

// toolbox prepares the programs of worker processes, once.
type toolbox struct {
	dir string

	mu      sync.Mutex // guards what follows
	sources string     // of the foreign workers; empty until they are there
	classes string     // of the Java worker; empty until they are compiled
}

// command returns the command that starts a worker.
func (b *toolbox) command(ctx context.Context, kind string, p *plan) (*exec.Cmd, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if isCurator(kind) || isKazoo(kind) {
		if err := b.unpack(); err != nil {
			return nil, err
		}
	}
	switch {
	case isCurator(kind):
		if err := b.compile(ctx); err != nil {
			return nil, err
		}
		args := []string{"-Xmx1000m", "-Xss256k", "-XX:+UseSerialGC"}
		if p.packet > 0 {
			args = append(args, "-Djute.maxbuffer="+strconv.Itoa(p.packet))
		}
		path := strings.Join([]string{zookeeperJar, curatorJar, quietJar, b.classes}, ":")
		args = append(args, "-cp", path, "CuratorWorker")
		return exec.CommandContext(ctx, "java", append(args, p.foreign(kind)...)...), nil
	case isKazoo(kind):
		args := append([]string{filepath.Join(b.sources, "kazoo_worker.py")}, p.foreign(kind)...)
		return exec.CommandContext(ctx, python, args...), nil
	default:
		return ourWorker(ctx, kind, p)
	}
}

// ourWorker returns the command that starts a worker of this program.
func ourWorker(ctx context.Context, kind string, p *plan) (*exec.Cmd, error) {
	exe, err := os.Executable()
	return exec.CommandContext(ctx, exe, append([]string{"worker", kind}, p.args()...)...), err
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
	args := append([]string{"-d", classes, "-cp", zookeeperJar + ":" + curatorJar}, sources...)
	out, err := exec.CommandContext(ctx, "javac", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("javac: %w\n%s", err, out)
	}
	b.classes = classes
	return nil
}
