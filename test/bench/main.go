// Command bench measures Turnstile and other projects in one run on one machine, and prints the figures as one table.
//
// The contenders of a load take turns, round by round, so that other work of the machine affects them alike; the figure
// is the median of the rounds. A figure without its peer in the same run does not count.
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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Options are the command's flags.
type options struct {
	duration time.Duration // of one round
	rounds   int
	part     string         // of the loads: one of parts by its name, all if empty
	only     *regexp.Regexp // loads whose key it matches
	who      *regexp.Regexp // contenders whose title it matches
	dir      string         // where servers keep their data
	binary   string         // the turnstile binary; built if empty
	write    string         // folder for the pages, the plot and the history
	redraw   bool
	profile  string // prefix of files for CPU profiles of our workers
	list     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		err = work(ctx, os.Args[2:], os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.duration, "duration", 600*time.Millisecond, "length of one round")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each contender; the figure is their median")
	flags.StringVar(&o.part, "part", "", "measure only one part: "+partNames())
	only := flags.String("only", "", "measure only loads whose key matches this regular expression (-list shows them)")
	who := flags.String("who", "", "measure only contenders whose name matches this regular expression")
	flags.StringVar(&o.dir, "dir", "", "folder for the servers' data, on the disk to measure (default: temporary)")
	flags.StringVar(&o.binary, "turnstile", "", "the turnstile binary to measure (built if empty)")
	flags.StringVar(&o.write, "write", "", "write the pages, the plot, the history and the README's table to the\n"+
		"repository in this folder, for each part that was measured whole")
	flags.BoolVar(&o.redraw, "redraw", false, "measure nothing: only draw the summary, the plot and the README's table")
	flags.StringVar(&o.profile, "profile", "", "write CPU profiles of our clients to files whose names begin so")
	flags.BoolVar(&o.list, "list", false, "list the loads, and do nothing")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	if o.who, err = regexp.Compile(*who); err != nil {
		return o, fmt.Errorf("-who: %w", err)
	}
	if o.part != "" && !slices.ContainsFunc(parts, func(p part) bool { return p.name == o.part }) {
		return o, fmt.Errorf("-part must be one of %s: %q", partNames(), o.part)
	}
	if o.redraw && o.write == "" {
		return o, errors.New("-redraw needs -write")
	}
	if o.duration < time.Millisecond || o.rounds <= 0 || flags.NArg() > 0 {
		return o, errors.New("-duration must be at least 1ms, -rounds at least 1, and there must be no arguments")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.list {
		for _, p := range parts {
			for _, l := range p.loads() {
				fmt.Fprintf(stdout, "%-8s %-20s %s\n", p.name, l.key, l.title)
			}
		}
		return nil
	}
	if o.redraw {
		return publish(o.write, nil, nil)
	}
	if o.dir, err = os.MkdirTemp(o.dir, "turnstile-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	m := describe(ctx, o.dir)
	b := &bench{
		options: o,
		servers: &servers{dir: o.dir, log: stderr, binary: o.binary, running: make(map[string]*backend)},
		tools:   &toolbox{dir: o.dir},
		log:     stderr,
	}
	defer b.servers.end()
	sections, err := b.all(ctx, &m, command(args), stdout)
	if err != nil || o.write == "" {
		return err
	}
	if len(sections) == 0 {
		fmt.Fprintf(stderr, "%s is unchanged: no part was measured whole.\n", o.write)
		return nil
	}
	return publish(o.write, sections, &m)
}

// all measures the selected loads, prints the results, and returns the sections of the parts that were measured whole.
func (b *bench) all(ctx context.Context, m *machine, command string, stdout io.Writer) ([]section, error) {
	var sections []section
	measured := 0
	for i := range parts {
		p := &parts[i]
		if b.options.part != "" && b.options.part != p.name {
			continue
		}
		start := time.Now()
		rows, whole, err := b.part(ctx, p)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			continue
		}
		measured++
		var results bytes.Buffer
		writeTable(&results, rows)
		fmt.Fprintln(&results)
		writeVerdict(&results, rows)
		if _, err := stdout.Write(results.Bytes()); err != nil {
			return nil, err
		}
		if whole {
			m.took = time.Since(start).Round(time.Second)
			sections = append(sections, section{p.title, report(p, m, b.options, command, results.String())})
		}
	}
	if measured == 0 {
		return nil, errors.New("nothing to measure: -list shows the loads for -only")
	}
	return sections, nil
}

// part measures the selected loads of a part, and reports whether those were all, with all contenders.
func (b *bench) part(ctx context.Context, p *part) (rows []row, whole bool, err error) {
	defer b.servers.end() // the next part starts with empty servers
	whole = b.options.who.String() == ""
	for _, l := range p.loads() {
		if !b.options.only.MatchString(l.key) {
			whole = false
			continue
		}
		fmt.Fprintf(b.log, "%s: %s\n", l.key, l.title)
		start := time.Now()
		measured, err := l.measure(ctx, b, &l)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", l.key, err)
		}
		fmt.Fprintf(b.log, "  took %v\n", time.Since(start).Round(100*time.Millisecond))
		rows = append(rows, measured...)
	}
	return rows, whole, nil
}

// command is what was run, as a shell takes it.
func command(args []string) string {
	words := []string{"go -C bench run ."}
	for _, a := range args {
		if strings.ContainsAny(a, " |*()\"") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
