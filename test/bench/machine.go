package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// A fact is a line of the report.
type fact struct{ name, value string }

type machine struct {
	date     string
	commit   string        // of what was measured
	took     time.Duration // the whole run
	facts    []fact
	versions []fact
}

// describe returns what the figures depend on, as far as the system tells it.
func describe(ctx context.Context, dir string) machine {
	m := machine{
		date:   time.Now().UTC().Format(time.DateOnly),
		commit: output(ctx, "git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"),
	}
	add := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			m.facts = append(m.facts, fact{name, value})
		}
	}
	processor := cmp.Or(procField("/proc/cpuinfo", "model name"), runtime.GOARCH)
	add("processor", fmt.Sprintf("%s, %d cores", processor, runtime.NumCPU()))
	add("memory", procField("/proc/meminfo", "MemTotal"))
	add("system", output(ctx, "uname", "-sr"))
	add("file system of the servers' data", output(ctx, "df", "--output=fstype", dir))
	if d, err := syncTime(dir); err == nil {
		add("a 200-byte append and fsync there", fmt.Sprintf("%v (median), which limits a lone durable writer to %s/s",
			d.Round(time.Microsecond), number(1/d.Seconds())))
	}
	m.versions = versions(ctx)
	return m
}

// versions lists the versions of what is installed.
func versions(ctx context.Context) []fact {
	all := []fact{{"Go", runtime.Version()}}
	for _, v := range []struct{ name, value string }{
		{"Java", output(ctx, "java", "-version")},
		{"ZooKeeper", jarVersion(zookeeperJar)},
		{"Curator", jarVersion(curatorJar)},
		{"kazoo", output(ctx, python, "-c",
			"import kazoo, sys; print(kazoo.__version__, 'on Python', sys.version.split()[0])")},
		{"etcd", output(ctx, "etcd", "--version")},
		{"Redis", output(ctx, "redis-server", "--version")},
	} {
		if v.value != "" {
			all = append(all, fact{v.name, v.value})
		}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/go-zookeeper/zk", "go.etcd.io/etcd/client/v3", "github.com/go-redsync/redsync/v4",
			"github.com/bsm/redislock", "github.com/redis/go-redis/v9":
			all = append(all, fact{m.Path, m.Version})
		}
	}
	return all
}

// jarVersion returns the version in the name of a link that Debian puts beside a jar.
func jarVersion(jar string) string {
	stem := strings.TrimSuffix(jar, ".jar") + "-"
	names, err := filepath.Glob(stem + "[0-9]*.jar")
	if err != nil || len(names) == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(names[0], stem), ".jar")
}

// procField returns the first value of a key in a file of "key: value" lines.
func procField(file, key string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// output returns the line of a command's output that matters: the last of a table, the first of a version.
func output(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if name == "df" {
		return lines[len(lines)-1]
	}
	return lines[0]
}

// syncTime returns how long a small append to a file takes until it is on the disk.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	record := make([]byte, 200)
	var figures []float64
	for range 300 {
		start := time.Now()
		if _, err := f.Write(record); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		figures = append(figures, float64(time.Since(start)))
	}
	return time.Duration(measure.Median(figures)), nil
}
