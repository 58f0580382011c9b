package cli

// turnstile dashboard.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/dashboard"
	"github.com/seed-a3166700/turnstile/internal/certfile"
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

	config   dashboard.Config
	listen   string
	hosts    []string
	insecure bool
	users    string
	issuer   dashboard.OIDCConfig
	secret   string // file with issuer.Secret
	allow    []string
	proxies  []string
	cert     string
	key      string
	readFor  command.Period
}

func newDashboardCall(app *command.App) *dashboardCall {
	d := &dashboardCall{Access: command.Access{App: app, Path: "/"}, readFor: command.Period(30 * time.Second)}
	d.config.Audit = app.Complain
	return d
}

// dashboardGarbage is how much garbage there may be, in percent of what is in use. A dashboard holds what it knows of
// all locks, and reads them all again when much changes; of 10,000 locks with 100,000 waiters and ten viewers it needed
// 104 MiB at most with Go's 100 %, and 92 MiB so.
const dashboardGarbage = 50

func newDashboard(app *command.App) *cobra.Command {
	d := newDashboardCall(app)
	cmd := &cobra.Command{
		Use:   "dashboard [flags] [PATH]",
		Short: "Serve web pages with locks, waits, leaders, queues, sessions and servers",
		Long: `Serves web pages that show what is held or waited for at PATH and below it, or in the whole tree without
PATH: all locks with holders and waiters, who waits for whom, deadlocks, leaders, queues and their items,
sessions, servers and the tree of nodes. The data of nodes and items is shown with --show-data only. The pages
keep themselves up to date, and remember the last 24 hours, in memory.

However many look at it, it costs the servers as much as one "turnstile locks --watch", and besides that what
the open pages need: lines of locks, counts of queues, lists of items, four-letter words, and for the overview
"turnstile doctor" each ten minutes.

It changes nothing without --allow-changes. With it, holders can be asked to release a lock, for a reason that
must be given, or it is taken from them by force, once the last part of its path was typed; and queues can be
paused, and all their dead letters requeued or removed.

All who reach the address see everything, and with --allow-changes may change all that. So it listens on this
machine alone, unless viewers must sign in (--user-file, --oidc-issuer) and it speaks TLS (--listen-cert,
--listen-key), or --insecure is given. A proxy that does both can stand in front of it: give the proxy's name with
--host. With --trust-proxy and the proxy's address, changes are recorded under the user and the address in its
headers X-Forwarded-User and X-Forwarded-For, which it must set itself, whatever its client has sent.

With --oidc-issuer, browsers are sent there to sign in (OpenID Connect: the code flow with PKCE), each hour, and
when the dashboard has been restarted. Those of its users may see the pages who have one of the claims --oidc-allow,
such as groups=ops; an email counts only if the issuer says that it is verified. Do not choose a claim that users
can set themselves, as preferred_username often is. Some issuers tell groups only if --oidc-scope asks for them. The
issuer must know the dashboard by --oidc-client and --oidc-redirect. Programs go on using tokens of --user-file.
A user who is removed at the issuer sees the pages for at most one more hour.

The file of users has a line for each: what htpasswd -nB NAME prints; or for a program, which sends a token
("Authorization: Bearer TOKEN"), NAME: and the token's hash, which printf %s TOKEN | sha256sum prints. It is
read again when it has changed, and so are the certificate and its key.

It serves /livez and /readyz (503 while no server is connected) as well, until a signal comes.

Exit codes: 0 a signal ended it; 64 usage; 69 no server, or it cannot listen; 77 access denied.`,
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
			if err := d.audience(); err != nil {
				return command.Usage(cmd, err)
			}
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(dashboardGarbage)
			}
			return command.ServeUntilSignal(cmd.Context(), func(ctx context.Context) error {
				return d.Open(ctx, false, d.listenAndServe)
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
		"also listen for other machines in clear text, or without a password")
	flags.StringVar(&d.users, "user-file", "",
		"`file` of those who may see it: what htpasswd -nB prints for each, or NAME:SHA256 of a token")
	flags.StringVar(&d.cert, "listen-cert", "", "PEM `file` of the certificate to serve HTTPS with")
	flags.StringVar(&d.key, "listen-key", "", "PEM `file` of its key")
	flags.StringVar(&d.issuer.Issuer, "oidc-issuer", "", "`URL` of an OpenID Connect issuer where viewers sign in")
	flags.StringVar(&d.issuer.Client, "oidc-client", "", "`id` under which the issuer knows this dashboard")
	flags.StringVar(&d.secret, "oidc-secret-file", "", "`file` with the secret of that client, if it has one")
	flags.StringVar(&d.issuer.Redirect, "oidc-redirect", "",
		"`URL` by which browsers reach this dashboard's /signed-in, which the issuer must know")
	flags.StringArrayVar(&d.issuer.Scopes, "oidc-scope", nil,
		"`scope` to ask for besides openid, profile and email, such as groups (repeatable)")
	flags.StringArrayVar(&d.allow, "oidc-allow", nil,
		"`CLAIM=VALUE` of those of its users who may see the pages (repeatable: one is enough)")
	flags.StringArrayVar(&d.proxies, "trust-proxy", nil,
		"`address` or network of a proxy that says who a viewer is and where from (repeatable)")
	flags.BoolVar(&d.config.Changes, "allow-changes", false,
		"allow to revoke locks, to pause queues, and to requeue or remove dead letters")
	flags.BoolVar(&d.config.Data, "show-data", false,
		"also show the data of nodes and items, to all viewers")
	flags.Var(&d.readFor, "read-for", "stop a reading of everything after this time, and show what was found")
	command.VariablesOf("dashboard", flags, "listen", "host", "insecure", "allow-changes", "show-data",
		"user-file", "oidc-issuer", "oidc-client", "oidc-secret-file", "oidc-redirect", "oidc-scope", "oidc-allow",
		"listen-cert", "listen-key", "trust-proxy")
	return cmd
}

// checkListen checks where it listens, and for whom.
func (d *dashboardCall) checkListen(cmd *cobra.Command) error {
	if _, _, err := net.SplitHostPort(d.listen); err != nil {
		return command.Usagef(cmd, "--listen must be host:port: %q", d.listen)
	}
	for _, name := range d.hosts {
		if name == "" || strings.ContainsAny(name, ":/ ") {
			return command.Usagef(cmd, "--host must be a name without a port, such as locks.example.com: %q", name)
		}
	}
	if d.local() || d.insecure {
		return nil
	}
	var lacks []string
	if d.users == "" && d.issuer.Issuer == "" {
		lacks = append(lacks, "--user-file for a password (or --oidc-issuer)")
	}
	if d.cert == "" {
		lacks = append(lacks, "--listen-cert and --listen-key for encryption")
	}
	if len(lacks) == 0 {
		return nil
	}
	return command.Usagef(cmd, "--listen %s can be reached from other machines: add %s, listen on 127.0.0.1 behind a "+
		"proxy that has both, or add --insecure", d.listen, strings.Join(lacks, ", "))
}

// local reports whether only this machine reaches it.
func (d *dashboardCall) local() bool {
	host, _, _ := net.SplitHostPort(d.listen)
	return command.IsLocal(host)
}

// audience sets who may see the pages, and whom it believes.
func (d *dashboardCall) audience() (err error) {
	cfg := &d.config
	if d.users != "" {
		if cfg.Users, err = dashboard.ReadUsers(d.users, cfg.Audit); err != nil {
			return fmt.Errorf("--user-file: %w", err)
		}
	}
	if cfg.OIDC, err = d.oidc(); err != nil {
		return err
	}
	for _, text := range d.proxies {
		proxy, err := netip.ParsePrefix(text)
		if addr, aerr := netip.ParseAddr(text); aerr == nil {
			proxy, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return fmt.Errorf("--trust-proxy must be an address or a network, such as 10.0.0.0/24: %q", text)
		}
		cfg.Proxies = append(cfg.Proxies, proxy)
	}
	if d.cert == "" && d.key == "" {
		return nil
	}
	log := command.NewLogger(d.App.Stderr, slog.LevelError)
	files, err := certfile.Load(certfile.Names{Cert: d.cert, Key: d.key}, log)
	if err != nil {
		return fmt.Errorf("--listen-cert, --listen-key: %w", err)
	}
	cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	files.Server(cfg.TLS)
	return nil
}

// oidc returns how viewers sign in at an issuer, nil if there is none.
func (d *dashboardCall) oidc() (*dashboard.OIDC, error) {
	cfg := d.issuer
	if cfg.Issuer == "" {
		if cfg.Client != "" || cfg.Redirect != "" || d.secret != "" || len(d.allow)+len(cfg.Scopes) > 0 {
			return nil, errors.New("the other flags that begin with --oidc are for --oidc-issuer, which is missing")
		}
		return nil, nil //nolint:nilnil // there is none
	}
	if d.secret != "" {
		secret, err := command.ReadSecret(d.secret)
		if err == nil && secret == "" {
			err = fmt.Errorf("%s is empty", d.secret)
		}
		if err != nil {
			return nil, fmt.Errorf("--oidc-secret-file: %w", err)
		}
		cfg.Secret = secret
	}
	for _, text := range d.allow {
		name, value, _ := strings.Cut(text, "=")
		cfg.Allow = append(cfg.Allow, dashboard.Claim{Name: name, Value: value})
	}
	cfg.Complain = d.config.Audit
	issuer, err := dashboard.NewOIDC(cfg)
	if err != nil {
		return nil, fmt.Errorf("--oidc-issuer, --oidc-client, --oidc-redirect, --oidc-allow: %w", err)
	}
	return issuer, nil
}

// listenAndServe serves on --listen until ctx ends.
func (d *dashboardCall) listenAndServe(ctx context.Context, client *zk.Client) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.listen)
	if err != nil {
		return &command.Error{Code: command.ExitNoServer, Err: err}
	}
	return d.serve(ctx, client, l, func() error {
		url := d.url(l)
		return d.App.ReportLine(d.AsJSON, shownJSON{URL: url}, "serving %s", url)
	})
}

// url is the address of its pages.
func (d *dashboardCall) url(l net.Listener) string {
	if d.config.TLS != nil {
		return fmt.Sprintf("https://%s/", l.Addr())
	}
	return fmt.Sprintf("http://%s/", l.Addr())
}

// serve serves on l, which it closes, until ctx ends. It calls ready once there is something to show.
func (d *dashboardCall) serve(ctx context.Context, client *zk.Client, l net.Listener, ready func() error) error {
	defer l.Close() // also if it has been closed before
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
	cfg := d.config
	cfg.Ensemble, cfg.Root, cfg.Hosts = d.Connection.Where(), d.Path, d.hosts
	if host, _, _ := net.SplitHostPort(d.listen); host != "" { // it was checked
		cfg.Hosts = append(cfg.Hosts, host)
	}
	board := dashboard.New(ctx, newSource(d.Access, client, s), cfg)
	if err := ready(); err != nil {
		return err
	}
	return board.Serve(ctx, l)
}
