package cli

// turnstile dashboard.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/dashboard"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
)

// shownJSON is what "turnstile dashboard --json" prints when it is ready.
type shownJSON struct {
	URL string `json:"url"`
}

// dashboardCall is a call of turnstile dashboard.
type dashboardCall struct {
	command.Access

	listen   string
	hosts    []string
	changes  bool
	data     bool
	insecure bool
	readFor  command.Period
}

func newDashboard(app *command.App) *cobra.Command {
	d := &dashboardCall{Access: command.Access{App: app, Path: "/"}, readFor: command.Period(30 * time.Second)}
	cmd := &cobra.Command{
		Use:   "dashboard [flags] [PATH]",
		Short: "Serve web pages with locks, waits, leaders, queues, sessions and servers",
		Long: `Serves web pages that show what is held or waited for at PATH and below it, or in the whole tree without
PATH: all locks with holders and waiters, who waits for whom, deadlocks, leaders, queues, sessions, servers and the
tree of nodes, whose data only --show-data shows. They keep themselves up to date, and remember the last 24
hours, in memory.

However many look at it, it costs the servers as much as one "turnstile locks --watch", and besides that what
the open pages need: lines of locks, counts of queues, four-letter words, and for the overview
"turnstile doctor" each ten minutes.

It changes nothing without --allow-changes. With it, holders can be asked to release a lock, for a reason that
must be given, or it is taken from them by force, once the last part of its path was typed.

There is no sign-in, and no encryption. So it listens on this machine alone, unless --insecure is given: then
everybody who reaches the address sees everything, and with --allow-changes may revoke. For other machines put a
proxy in front of it that asks for a password and speaks TLS, and give the proxy's name with --host.

It serves /livez and /readyz (503 while no server is connected) as well, until a signal comes.`,
		Example: `  turnstile dashboard --connect zk1:2181,zk2:2181,zk3:2181
  turnstile dashboard --connect zk1:2181 --listen 127.0.0.1:8080 --host locks.example.com /app`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef(cmd, "only one PATH can be given; everything below it is shown")
			case len(args) == 1:
				if err := d.ParsePath(cmd, args, "/jobs"); err != nil {
					return err
				}
			}
			if err := d.checkListen(cmd); err != nil {
				return err
			}
			return command.UntilSignal(cmd.Context(), func(ctx context.Context) error {
				return d.Open(ctx, false, d.serve)
			})
		},
	}
	flags := cmd.Flags()
	d.Flags(cmd, "one JSON object when it is ready")
	d.Connection.ACLFlag(flags)
	flags.StringVar(&d.listen, "listen", "127.0.0.1:8080", "`address` to serve HTTP on")
	flags.StringArrayVar(&d.hosts, "host", nil,
		"`name` by which browsers may call it, such as that of a proxy (repeatable)")
	flags.BoolVar(&d.insecure, "insecure", false,
		"also listen for other machines, in clear text and without a password")
	flags.BoolVar(&d.changes, "allow-changes", false, "allow to revoke locks and to take them by force")
	flags.BoolVar(&d.data, "show-data", false, "also show the data of nodes, to everybody who sees the pages")
	flags.Var(&d.readFor, "read-for", "stop a reading of everything after this time, and show what was found")
	command.VariablesOf("dashboard", flags, "listen", "host", "insecure", "allow-changes", "show-data")
	return cmd
}

// checkListen checks --listen.
func (d *dashboardCall) checkListen(cmd *cobra.Command) error {
	host, _, err := net.SplitHostPort(d.listen)
	if err != nil {
		return command.Usagef(cmd, "--listen must be host:port: %q", d.listen)
	}
	for _, name := range d.hosts {
		if name == "" || strings.ContainsAny(name, ":/ ") {
			return command.Usagef(cmd, "--host must be a name without a port, such as locks.example.com: %q", name)
		}
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() || d.insecure {
		return nil
	}
	return command.Usagef(cmd, "--listen %s can be reached from other machines, and there is neither a password nor "+
		"encryption: listen on 127.0.0.1 behind a proxy that has both, or add --insecure", d.listen)
}

// serve serves until ctx ends.
func (d *dashboardCall) serve(ctx context.Context, client *zk.Client) error {
	s, err := survey.Follow(ctx, client, survey.FollowConfig{
		Config: survey.Config{Root: d.Path, Time: time.Duration(d.readFor)},
	})
	if err != nil {
		return err
	}
	defer s.Close()
	soon, cancel := context.WithTimeout(ctx, firstReading)
	first, err := s.Next(soon, nil, nil)
	cancel()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		if err := closed(first, d.Path); err != nil {
			return err
		}
	case soon.Err() == nil:
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.listen)
	if err != nil {
		return &command.Error{Code: command.ExitNoServer, Err: err}
	}
	hosts := d.hosts
	if host, _, _ := net.SplitHostPort(d.listen); host != "" { // it was checked
		hosts = append(hosts, host)
	}
	board := dashboard.New(ctx, newSource(d.Access, client, s), dashboard.Config{
		Ensemble: d.Connection.Where(), Root: d.Path, Hosts: hosts, Changes: d.changes, Data: d.data,
		Audit: func(format string, args ...any) { d.App.Complain(format, args...) },
	})
	url := fmt.Sprintf("http://%s/", l.Addr())
	if err := d.App.ReportLine(d.AsJSON, shownJSON{URL: url}, "serving %s", url); err != nil {
		return errors.Join(err, l.Close())
	}
	return board.Serve(ctx, l)
}
