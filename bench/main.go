// Command bench measures Turnstile beside other projects, in one run on one machine, and prints the figures as one table.
//
// The contenders of a load take turns, round by round, so that whatever else the machine does meanwhile hits them alike;
// the figure is the median of the rounds. A figure without its peer in the same run does not count.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"syscall"
	"time"
)

// Options are the command's flags.
type options struct {
	duration time.Duration // of one round
	rounds   int
	only     *regexp.Regexp // loads whose key it matches
	dir      string         // where servers keep their data
	binary   string         // the turnstile binary; built if empty
	write    string         // file for the whole report
	profile  string         // file for a CPU profile of the clients
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.duration, "duration", 5*time.Second, "length of one round")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each contender; the figure is their median")
	only := flags.String("only", "", "measure only the loads whose key this regular expression matches")
	flags.StringVar(&o.dir, "dir", "", "folder for the servers' data; must be on the disk to be measured (a temporary one if empty)")
	flags.StringVar(&o.binary, "turnstile", "", "the turnstile binary to measure (built if empty)")
	flags.StringVar(&o.write, "write", "", "write the report, as Markdown, to this file too")
	flags.StringVar(&o.profile, "profile", "", "write a CPU profile of the clients to this file")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	if o.duration <= 0 || o.rounds <= 0 || flags.NArg() > 0 {
		return o, errors.New("-duration and -rounds must be above zero, and there are no arguments")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp(o.dir, "turnstile-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}

	host := &host{dir: o.dir, log: stderr}
	defer host.close()
	defer host.recover(&err)
	machine := describe(ctx, o.dir)
	servers, err := startServers(ctx, host, o)
	if err != nil {
		return err
	}

	var rows []row
	for _, l := range loads(servers) {
		if !o.only.MatchString(l.key) {
			continue
		}
		fmt.Fprintf(stderr, "%s: %s\n", l.key, l.title)
		measured, err := l.measure(ctx, o, stderr)
		if err != nil {
			return fmt.Errorf("%s: %w", l.key, err)
		}
		rows = append(rows, measured...)
	}
	if o.only.MatchString("footprint") {
		fmt.Fprintln(stderr, "footprint: start-up and memory")
		measured, err := footprint(ctx, host, servers, o)
		if err != nil {
			return fmt.Errorf("footprint: %w", err)
		}
		rows = append(rows, measured...)
	}

	var table bytes.Buffer
	writeTable(&table, rows)
	if _, err := stdout.Write(table.Bytes()); err != nil {
		return err
	}
	if o.write == "" {
		return nil
	}
	var report bytes.Buffer
	writeReport(&report, machine, servers, o, table.String())
	return os.WriteFile(filepath.Clean(o.write), report.Bytes(), 0o644)
}
