package interop_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// classPath lists all jars that the programs need.
var classPath = strings.Join([]string{
	zookeeperJar, curatorJar, discoveryJar, lockJar, queueJar, electionJar, jlineJar, quietJar,
}, ":")

// needJava skips the test if something is missing that the programs of testdata/java need, which are compiled together.
func needJava(t *testing.T) {
	t.Helper()
	peer.Need(t, "javac", zookeeperJar, curatorJar, discoveryJar, lockJar, queueJar, electionJar)
}

// Jars of Debian packages. A jar's manifest names its dependencies, which java and javac follow.
const (
	zookeeperJar = "/usr/share/java/zookeeper.jar"
	curatorJar   = "/usr/share/java/curator-recipes.jar"
	discoveryJar = "/usr/share/java/curator-x-discovery.jar"
	lockJar      = "/usr/share/java/zookeeper-recipes-lock.jar"
	queueJar     = "/usr/share/java/zookeeper-recipes-queue.jar"
	electionJar  = "/usr/share/java/zookeeper-recipes-election.jar"
	quietJar     = "/usr/share/java/slf4j-nop.jar"
	jlineJar     = "/usr/share/java/jline2.jar"
)

// TestJavaClient runs ZooKeeper's own client.
//
// Promise: 11
func TestJavaClient(t *testing.T) {
	t.Parallel()
	needJava(t)
	onEach(t, options{foreign: true}, func(t *testing.T, h *host) {
		t.Helper()
		runJava(t, "Client", h.addr)
	})
}

// TestCurator runs Curator's framework and all of its recipes.
//
// Promise: 11
func TestCurator(t *testing.T) {
	t.Parallel()
	needJava(t)
	onEach(t, options{foreign: true}, func(t *testing.T, h *host) {
		t.Helper()
		runJava(t, "Recipes", h.addr)
	})
}

// TestCommandLineClient runs the class of zkCli.sh with one command a run, as scripts do, and with several commands
// at its prompt.
//
// Promise: 11
func TestCommandLineClient(t *testing.T) {
	t.Parallel()
	peer.Need(t, "java", zookeeperJar)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		const event = "type:NodeDeleted path:/cli"
		commands := []struct{ line, want string }{
			{"create /cli hello", "Created /cli"},
			{"get -s /cli", "dataLength = 5"},
			{"set /cli changed\nget /cli", "changed"},
			{"create -s -e /cli/s- x", "Created /cli/s-0000000000"},
			{"create -c /cli/container", "Created /cli/container"},
			{"create -t 100000 /cli/ttl x", "Created /cli/ttl"},
			{"ls -R /cli", "/cli/container"},
			{"stat /cli", "numChildren = 3"},
			{"getAcl /cli", "'world,'anyone"},
			{"addauth digest bob:secret\nsetAcl /cli auth::cdrwa\ngetAcl /cli", "'digest,'bob"},
			{"whoami", "digest"},
			{"setquota -n 10 /cli\nlistquota /cli", "count=10"},
			{"delquota /cli\nlistquota /cli", "does not exist"},
			{"getAllChildrenNumber /cli", "3"},
			{"getEphemerals /cli", "/cli/s-0000000000"},
			{"sync /cli", "Sync is OK"},
			{"version", "ZooKeeper CLI version: 3."},
			{"addWatch /cli\ndeleteall /cli", event},
			{"ls /", "zookeeper"},
		}
		var script strings.Builder
		for _, c := range commands {
			script.WriteString(c.line + "\n")
		}
		script.WriteString("quit\n")
		out := runInput(t, 5*time.Minute, script.String(), "java",
			javaArgs("org.apache.zookeeper.ZooKeeperMain", "-server", h.addr)...)
		rest := out
		for _, c := range commands {
			at := strings.Index(rest, c.want)
			if at < 0 {
				t.Fatalf("got no %q after %q on %s in\n%s", c.want, c.line, h.name, out)
			}
			if c.want != event { // of which another thread tells, perhaps behind the next answer
				rest = rest[at+len(c.want):]
			}
		}
	})
}

func runJava(t *testing.T, class, addr string) {
	t.Helper()
	args := []string{addr}
	if only := os.Getenv("JAVA_STEPS"); only != "" {
		args = append(args, strings.Fields(only)...)
	}
	run(t, 10*time.Minute, "java", ownArgs(t, class, args...)...)
}

// ownArgs is javaArgs for a program of testdata/java, which it compiles.
func ownArgs(t *testing.T, class string, args ...string) []string {
	t.Helper()
	all := javaArgs(class, args...)
	all[slices.Index(all, "-cp")+1] += ":" + classes(t)
	return all
}

func javaArgs(class string, args ...string) []string {
	return append([]string{
		"-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Dzookeeper.extendedTypesEnabled=true", "-cp", classPath, class,
	}, args...)
}

var compiling sync.Mutex // guards the compilation

// classes compiles testdata/java and returns the directory of the classes, which stays for later runs.
func classes(t *testing.T) string {
	t.Helper()
	compiling.Lock()
	defer compiling.Unlock()
	sources, err := filepath.Glob("testdata/java/*.java")
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	for _, name := range sources {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(b)
	}
	dir := filepath.Join(os.TempDir(), "turnstile-interop-"+hex.EncodeToString(hash.Sum(nil)[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	scratch := t.TempDir()
	run(t, buildLimit, "javac",
		append([]string{"-d", filepath.Join(scratch, "classes"), "-cp", classPath}, sources...)...)
	// A rename creates the directory in one step. Another process may have created it first, with the same classes.
	if err := os.Rename(filepath.Join(scratch, "classes"), dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return dir
}

// TestRecipesOfZooKeeper runs the recipes of ZooKeeper itself.
func TestRecipesOfZooKeeper(t *testing.T) {
	t.Parallel()
	needJava(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		runJava(t, "Classics", h.addr)
	})
}
