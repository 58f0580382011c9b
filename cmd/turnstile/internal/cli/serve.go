package cli

// turnstile serve.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/server/zoocfg"
)

// servingJSON is what "turnstile serve --json" prints when it is ready.
type servingJSON struct {
	Addresses []string `json:"addresses"` // as --connect takes them
	PID       int      `json:"pid"`
	Data      string   `json:"data,omitempty"` // not in memory
	Dashboard string   `json:"dashboard,omitempty"`
}

// detachedFlag is the flag of a user's own server.
const detachedFlag = "detached"

// serving is "turnstile serve".
type serving struct {
	app       *command.App
	listen    []string
	tlsListen []string
	data      string
	inMemory  bool
	idleExit  command.Duration
	config    string
	tls       command.TLS
	saslUsers string
	allow     allowances
	dashboard string
	detached  bool
	json      bool
}

func newServe(app *command.App) *cobra.Command {
	s := &serving{app: app}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run the embedded ZooKeeper server",
		Long: `Serves ZooKeeper's client protocol on this machine, to any ZooKeeper client, until SIGTERM. What it has
acknowledged survives kill -9 and power loss. For an ensemble of several machines use Apache ZooKeeper.

Commands use this server if they name it with --connect. Commands that name no server use this user's own
server, a different one (turnstile own-server). Certificates are read again when their files have changed.
Users and a zoo.cfg are read when the server starts: restart it after they change. Its clients keep their
sessions and locks if it is back within their session timeout. The environment variables of its flags begin with
TURNSTILE_SERVE_: --listen is TURNSTILE_SERVE_LISTEN.

When it is ready it prints one line with its addresses, and tells systemd (Type=notify, WatchdogSec). Warnings
go to standard error.

Exit codes: 0 after SIGTERM, or when it was idle; 64 usage; 69 it cannot listen, or not use the directory; 70 its
disk has failed; 78 the file of --config is wrong.`,
		Example: `  turnstile serve --listen 127.0.0.1:2181 --data /var/lib/turnstile
  turnstile serve --listen unix:/run/turnstile.sock --in-memory
  turnstile serve --config /etc/zookeeper/conf/zoo.cfg`,
		Args: command.ExactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.settings(cmd)
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&s.listen, "listen", nil,
		"`address` to listen on, as 127.0.0.1:2181, unix:/path, or fd:NAME of a socket that systemd passes "+
			"(repeatable; default 127.0.0.1:2181)")
	flags.StringArrayVar(&s.tlsListen, "tls-listen", nil,
		"`address` to listen on with TLS; the addresses of --listen are then plain (repeatable)")
	flags.StringVar(&s.data, "data", "",
		"`directory` of the data (default without --config: serve in this user's state directory)")
	flags.BoolVar(&s.inMemory, "in-memory", false, "keep the data in memory only")
	flags.Var(&s.idleExit, "idle-exit", "end after this time without a session; 0 means never")
	flags.StringVar(&s.config, "config", "", "read a ZooKeeper configuration `file`, zoo.cfg; flags take precedence")
	s.tls.ServerFlags(flags)
	flags.StringVar(&s.saslUsers, "sasl-users", "", "`file` of users for SASL DIGEST-MD5, one user:password per line")
	s.allow.flags(flags)
	flags.StringVar(&s.dashboard, "dashboard", "",
		"`address` of web pages about it that change nothing, as 127.0.0.1:8080 (turnstile dashboard; default: off)")
	flags.BoolVarP(&s.app.Verbose, "verbose", "v", false, "log what happens, on standard error")
	flags.BoolVar(&s.json, "json", false, "print one JSON object when ready (docs/cli-json.md)")
	flags.BoolVar(&s.detached, detachedFlag, false, "run as a user's own server, started by another command")
	flags.Lookup(detachedFlag).Hidden = true
	command.Rivals(cmd, "data", "in-memory")
	command.VariablesOf("serve", flags)
	return cmd
}

// settings combines the flags and the configuration file into the server's configuration.
func (s *serving) settings(cmd *cobra.Command) (server.Config, error) {
	level := slog.LevelWarn
	if s.app.Verbose || s.detached {
		level = slog.LevelInfo
	}
	log := s.app.Stderr
	if s.detached {
		log = ownserver.NewLog(log, s.data)
	}
	logger := command.NewLogger(log, level)
	var cfg server.Config
	if s.config != "" {
		var err error
		if cfg, err = readConfig(s.config, logger); err != nil {
			return cfg, &command.Error{Code: command.ExitConfig, Err: err}
		}
	}
	cfg.Logger = logger
	if s.detached { // its clients are all one user's: long sessions, and what these words show, harm no one else
		cfg.MaxSessionTimeout, cfg.FourLetterWords = 24*time.Hour, []string{"cons", "dump"}
	}
	given := func(flag string) bool { return command.Given(cmd.Flags().Lookup(flag)) }
	if given("idle-exit") {
		cfg.IdleExit = time.Duration(s.idleExit)
	}
	err := errors.Join(s.place(&cfg), s.secure(&cfg))
	if err == nil {
		err = s.allow.apply(&cfg, given)
	}
	if err == nil && cfg.RequireSASL && len(cfg.SASLUsers) == 0 { // the file says so: apply knows of the flag
		err = &command.Error{
			Code: command.ExitConfig, Err: fmt.Errorf("%s: clients must log in, and there are no users", s.config),
			Hint: "name some with saslUsersFile, java.security.auth.login.config or --sasl-users",
		}
	}
	if e, ok := errors.AsType[*command.Error](err); ok {
		return cfg, e
	}
	if err != nil {
		return cfg, command.Usage(cmd, err)
	}
	return cfg, nil
}

// readConfig reads a zoo.cfg and logs what it does not understand.
func readConfig(path string, logger *slog.Logger) (server.Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return server.Config{}, err
	}
	defer f.Close()
	cfg, warnings, err := zoocfg.Parse(f, logger)
	if err != nil {
		return cfg, fmt.Errorf("%s: %w", path, err)
	}
	for _, w := range warnings {
		logger.Warn("configuration: "+w, "file", path) //nolint:sloglint // the warning is the message
	}
	return cfg, nil
}

// place sets where the server keeps its data.
func (s *serving) place(cfg *server.Config) error {
	switch {
	case s.inMemory:
		cfg.InMemory, cfg.Data = true, ""
	case s.data != "":
		cfg.InMemory, cfg.Data = false, s.data
	case cfg.Data == "" && !cfg.InMemory && s.config != "":
		return &command.Error{
			Code: command.ExitConfig, Err: fmt.Errorf("%s: dataDir is missing", s.config),
			Hint: "write it, or use --data or --in-memory",
		}
	case cfg.Data == "" && !cfg.InMemory:
		dir, err := ownserver.StateDir(s.app.Env.Vars)
		if err != nil {
			return fmt.Errorf("no directory for the data: name one with --data, or use --in-memory: %w", err)
		}
		cfg.Data = filepath.Join(dir, "serve")
	}
	return nil
}

// secure sets where the server listens, and which clients it accepts.
func (s *serving) secure(cfg *server.Config) error {
	addresses := slices.Concat(s.listen, s.tlsListen)
	if err := ownserver.CheckSockets(addresses...); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	for i, address := range addresses {
		if strings.HasPrefix(address, "unix:") {
			if strings.ContainsAny(address, ",!") {
				return fmt.Errorf("--listen: the path of a socket must not have a comma or an exclamation mark, "+
					"because no --connect could name it: %q", address)
			}
		} else if name, passed := passedName(address); passed && name != "" {
			continue
		} else if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("--listen must be host:port, unix:/path, or fd:NAME of a socket that systemd passes: %q",
				address)
		}
		if !strings.HasSuffix(address, ":0") && slices.Contains(addresses[:i], address) { // with 0 they differ
			return fmt.Errorf("--listen: %s is named twice", address)
		}
	}
	tlsConfig, err := s.tls.Server(cfg.Logger)
	if err != nil {
		return err
	}
	if tlsConfig != nil {
		cfg.TLS = tlsConfig
	}
	if err := s.listenAt(cfg, tlsConfig != nil); err != nil {
		return err
	}
	if s.saslUsers != "" {
		if cfg.SASLUsers, err = server.ReadSASLUsers(s.saslUsers); err != nil {
			return fmt.Errorf("--sasl-users: %w", err)
		}
	}
	return nil
}

// listenAt sets where the server listens. With a certificate and no --tls-listen, only unix sockets are plain.
func (s *serving) listenAt(cfg *server.Config, certificate bool) error {
	if len(s.listen)+len(s.tlsListen) > 0 {
		cfg.Listen, cfg.TLSListen = s.listen, s.tlsListen
	}
	if len(cfg.TLSListen) > 0 && cfg.TLS == nil {
		if len(s.tlsListen) == 0 {
			return &command.Error{Code: command.ExitConfig, Err: fmt.Errorf("%s: secureClientPort needs "+
				"ssl.keyStore.location, or --tls-cert and --tls-key", s.config)}
		}
		return errors.New("--tls-listen needs --tls-cert and --tls-key")
	}
	if len(cfg.Listen)+len(cfg.TLSListen) == 0 {
		cfg.Listen = []string{"127.0.0.1:2181"}
	}
	allSecure := certificate && len(cfg.TLSListen) == 0
	passed, err := takePassed(s.app.Env.Vars, slices.Concat(cfg.Listen, cfg.TLSListen))
	if err != nil {
		return err
	}
	var plain, secure []string
	for _, addr := range cfg.Listen {
		name, isPassed := passedName(addr)
		switch isUnix := strings.HasPrefix(addr, "unix:"); {
		case isPassed:
			for _, l := range passed[name] {
				if allSecure && l.Addr().Network() != "unix" {
					cfg.TLSListeners = append(cfg.TLSListeners, l)
				} else {
					cfg.Listeners = append(cfg.Listeners, l)
				}
			}
		case allSecure && !isUnix:
			secure = append(secure, addr)
		default:
			plain = append(plain, addr)
		}
	}
	for _, addr := range cfg.TLSListen {
		if name, isPassed := passedName(addr); isPassed {
			cfg.TLSListeners = append(cfg.TLSListeners, passed[name]...)
		} else {
			secure = append(secure, addr)
		}
	}
	cfg.Listen, cfg.TLSListen = plain, secure
	return nil
}

// run serves until a signal comes, or until the server ends by itself.
func (s *serving) run(ctx context.Context, cfg server.Config) error {
	if s.detached {
		if err := ownserver.CloseInherited(); err != nil {
			return command.Failed(err)
		}
	}
	ctx, stop := supervise.Until(ctx)
	defer stop()
	if !cfg.InMemory {
		// One that is missing here is a parent that cannot be made; later it is a part of the data.
		if err := s.unusable(os.MkdirAll(cfg.Data, 0o700), fs.ErrNotExist); err != nil {
			return err // any other one comes again
		}
	}
	board, err := s.newBoard(ctx, &cfg)
	if err != nil {
		return err
	}
	defer board.close()
	srv, err := server.Start(ctx, cfg)
	switch _, disk := errors.AsType[*server.DiskError](err); {
	case err != nil && errors.Is(err, context.Cause(ctx)): // as if it had come a moment later
		cfg.Logger.Info("ending", "why", err.Error())
		return nil
	case disk:
		return cmp.Or(s.unusable(err), error(&command.Error{Code: command.ExitSoftware, Err: err}))
	case errors.Is(err, server.ErrConfig): // by a flag: what the file has was checked
		return &command.Error{Code: command.ExitUsage, Err: err}
	case err != nil:
		return &command.Error{Code: command.ExitNoServer, Err: err}
	}
	if err := s.announce(srv.Addrs(), cfg.Data, board.url()); err != nil {
		return command.Failed(errors.Join(err, srv.Close()))
	}
	manager := newSupervisor(s.app.Env.Vars)
	if err := manager.tell("READY=1"); err != nil {
		cfg.Logger.Warn("the service manager cannot be told that the server is ready", "err", err)
	}
	var group sync.WaitGroup
	defer group.Wait()
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	group.Go(func() { manager.watch(watching, func() { srv.Sessions() }) })
	shown := board.start(watching, srv, &cfg)
	unreachable := make(chan struct{})
	if s.detached {
		group.Go(func() {
			if ownserver.AwaitRemoval(watching, srv.Addrs()) == nil {
				close(unreachable)
			}
		})
	}
	select {
	case <-unreachable: // another server may have the next holders, so ours are to hear of it
		if why := srv.Err(); why != nil { // it removes its socket when it ends
			cfg.Logger.Info("ending", "why", why.Error())
		} else {
			cfg.Logger.Warn("ending", "why", "its directory was removed or replaced")
		}
	case <-ctx.Done():
		cfg.Logger.Info("ending", "why", context.Cause(ctx).Error())
	case <-srv.Done():
		if why := srv.Err(); why != nil {
			cfg.Logger.Info("ending", "why", why.Error())
		}
	}
	_ = manager.tell("STOPPING=1") // it sees the end anyway
	unwatch()
	select {
	case <-shown: // its client has said goodbye
	case <-time.After(boardTime): // the process ends soon
	}
	if err := srv.Close(); err != nil {
		return &command.Error{Code: command.ExitSoftware, Err: err}
	}
	return nil
}

// unusable returns the error of a server that cannot use its directory, for a reason that is the user's to remove; nil
// for any other reason, such as a disk that fails. Others are further reasons of the user's.
func (s *serving) unusable(err error, others ...error) error {
	is := func(reason error) bool { return errors.Is(err, reason) }
	var hint string
	directory := "name a directory of yours with --data"
	if s.detached { // the reader has called another command
		directory = ownserver.Elsewhere
	}
	switch {
	case slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT}, is):
		hint = "make room on its disk"
	case is(syscall.EFBIG):
		hint = "allow this process larger files (ulimit -f)"
	case slices.ContainsFunc(append(others,
		fs.ErrPermission, fs.ErrExist, syscall.EROFS, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP), is):
		hint = directory
	case is(syscall.EMFILE), is(syscall.ENFILE):
		hint = "allow this process, or the machine, more open files (ulimit -n)"
	default:
		return nil
	}
	return &command.Error{Code: command.ExitNoServer, Err: err, Hint: hint}
}

// announce prints that the server is ready.
func (s *serving) announce(addrs []net.Addr, data, dashboard string) error {
	line := servingJSON{PID: os.Getpid(), Data: data, Dashboard: dashboard}
	for _, addr := range addrs {
		line.Addresses = append(line.Addresses, connectString(addr))
	}
	place := "in memory"
	if data != "" {
		place = "data in " + data
	}
	if dashboard != "" {
		place += ", dashboard " + dashboard
	}
	return s.app.Report(s.json, line, "serving %s (pid %d, %s)\n", strings.Join(line.Addresses, " "), line.PID, place)
}

// connectString is an address as --connect takes it.
func connectString(addr net.Addr) string {
	if addr.Network() == "unix" {
		return "unix:" + addr.String()
	}
	return addr.String()
}
