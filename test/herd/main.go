// Command herd counts the watch events that a server sends when a lock is released that many processes wait for: a
// simple lock, which all of them watch, and a line, in which each watches the one ahead. With
// -write it writes herd.md and its plot, herd.svg, into a folder.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// A target is a server to measure on.
type target struct {
	name string
	addr string
}

// A figure is how many events one hand-over costs.
type figure struct {
	server, lock string
	waiters      int
	events       float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "herd:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("herd", flag.ContinueOnError)
	dir := flags.String("write", "", "`folder` for herd.md and herd.svg; if empty, the page is only printed")
	list := flags.String("waiters", "10,100,1000", "how many processes wait, one measurement each")
	handovers := flags.Int("handovers", 5, "hand-overs of each measurement; the figure is their median")
	if err := flags.Parse(args); err != nil {
		return err
	}
	waiters, err := numbers(*list)
	if err != nil || *handovers < 1 || flags.NArg() > 0 {
		return errors.New("-waiters must be positive numbers with commas between them, -handovers positive, " +
			"and there must be no arguments")
	}
	host, err := peer.NewHost("", os.Stderr)
	if err != nil {
		return err
	}
	defer host.Close()
	defer host.Recover(&err)
	targets, err := servers(ctx, host)
	if err != nil {
		return err
	}
	var figures []figure
	for _, t := range targets {
		for _, l := range locks {
			for _, n := range waiters {
				events, err := countEvents(ctx, t.addr, l, n, *handovers)
				if err != nil {
					return fmt.Errorf("%s, %s, %d waiters: %w", t.name, l.name, n, err)
				}
				fmt.Fprintf(os.Stderr, "%s, %s, %d waiters: %v events\n", t.name, l.name, n, events)
				figures = append(figures, figure{t.name, l.name, n, measure.Median(events)})
			}
		}
	}
	var page bytes.Buffer
	if err := writePage(&page, figures, waiters, *handovers); err != nil {
		return err
	}
	if *dir == "" {
		_, err = os.Stdout.Write(page.Bytes())
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(*dir, "herd.md"), page.Bytes(), 0o644),
		os.WriteFile(filepath.Join(*dir, "herd.svg"), plot(figures), 0o644),
	)
}

// numbers reads positive numbers with commas between them.
func numbers(text string) ([]int, error) {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a positive number", part)
		}
		list = append(list, n)
	}
	return list, nil
}
