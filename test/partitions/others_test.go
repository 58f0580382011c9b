//go:build unix

package partitions_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// Files of Debian packages. A jar's manifest names its dependencies, which java and javac follow.
const (
	python       = "/usr/bin/python3" // Debian's, which finds Debian's kazoo
	kazooFile    = "/usr/lib/python3/dist-packages/kazoo/__init__.py"
	zookeeperJar = "/usr/share/java/zookeeper.jar"
	curatorJar   = "/usr/share/java/curator-recipes.jar"
	quietJar     = "/usr/share/java/slf4j-nop.jar"
)

// The names of the other projects in the results.
const (
	curatorName     = "Curator"
	kazooName       = "kazoo"
	goZooKeeperName = "go-zookeeper"
	etcdName        = "etcd"
)

// measureOthers partitions ensembles under holders of other projects' locks and of our mutex. It records when each of
// them is told, and fails only for ours. Each partition has the projects of one kind of server.
func measureOthers(t *testing.T) {
	t.Helper()
	phases, tick, seed := settings(t)
	peer.Need(t, "javac", zookeeperJar, curatorJar, kazooFile)
	zk := zookeeper(t, tick)
	us := cleaned(t, ours, zk)
	us.kinds, us.variants = kinds[:1], 1
	on := []struct {
		venue
		projects []project
	}{
		{newVenue(zk, tick), []project{
			us, other(curatorName, curator(t)), other(kazooName, kazoo), other(goZooKeeperName,
				golang(t, "go-zookeeper")),
		}},
		{newVenue(peer.Etcd(t, 3), tick), []project{other(etcdName, golang(t, "etcd"))}},
	}
	for phase := range phases {
		for _, sh := range shapes {
			if !sh.peers {
				continue
			}
			for _, o := range on {
				t.Run(fmt.Sprintf("%s/%s/%d", sh.name, o.projects[0].name, phase), func(t *testing.T) {
					newRun(t, o.projects, sh, o.venue, phase, seed).play()
				})
			}
		}
	}
}

// other returns a project with a mutex, whose holders are pinned to their server.
func other(name string, command func() *exec.Cmd) project {
	return project{name: name, kinds: kinds[:1], variants: 1, start: func(t *testing.T, tell *journal) *party {
		t.Helper()
		return startParty(t, command(), tell)
	}}
}

func curator(t *testing.T) func() *exec.Cmd {
	t.Helper()
	classes := t.TempDir()
	path := strings.Join([]string{zookeeperJar, curatorJar, quietJar, classes}, ":")
	build(t, "javac", "-d", classes, "-cp", path, "testdata/CuratorParty.java")
	return func() *exec.Cmd {
		return exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-cp", path, "CuratorParty")
	}
}

func kazoo() *exec.Cmd { return exec.Command(python, "testdata/kazoo_party.py") }

// golang builds the party of a project written in Go. It belongs to the benchmarks' module, so that our users do not
// depend on that project.
func golang(t *testing.T, name string) func() *exec.Cmd {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "party")
	build(t, "go", "-C", "../bench", "build", "-o", binary, "./party")
	return func() *exec.Cmd { return exec.Command(binary, name) }
}

func build(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
