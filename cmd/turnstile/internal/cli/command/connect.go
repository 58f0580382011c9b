package command

// The flags that name the server, and connecting.

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
	"github.com/seed-a3166700/turnstile/zk"
)

// Connection is how a command reaches its server: the flags that most commands share.
type Connection struct {
	Servers string // of --connect; empty for the user's own server
	AnyACL  bool   // of --acl-any

	sessionTimeout   Period
	connectTimeout   Period
	replyLimit       Size
	tls              TLS
	auth             []string
	saslUser         string
	saslPasswordFile string
	acl              acl // of nodes that are created

	flags *pflag.FlagSet
	own   *ownserver.Server // once Begin has found it; nil if servers are named
	used  zk.Config         // of the client that Begin has returned
	names []string          // of its servers
}

// Flags adds the flags.
func (c *Connection) Flags(flags *pflag.FlagSet) {
	c.flags = flags
	c.sessionTimeout, c.connectTimeout = Period(10*time.Second), Period(10*time.Second)
	flags.StringVar(&c.Servers, "connect", "", "ZooKeeper `servers`, as zk1:2181,zk2:2181/chroot or unix:/path "+
		"(default: this user's own server, started when needed)")
	flags.Var(&c.sessionTimeout, "session-timeout",
		"how long a client may be silent before the server releases its locks")
	flags.Var(&c.connectTimeout, "connect-timeout", "how long to wait for a server that answers")
	c.replyLimit = defaultSize
	flags.Var(&c.replyLimit, "reply-limit", "largest reply to accept, such as a list of many nodes")
	c.tls.clientFlags(flags)
	flags.StringArrayVar(&c.auth, "auth", nil,
		"credentials as `scheme:credentials`, such as digest:user:password (repeatable)")
	flags.StringVar(&c.saslUser, "sasl-user", "", "`user` for SASL DIGEST-MD5")
	flags.StringVar(&c.saslPasswordFile, "sasl-password-file", "", "`file` with that user's password")
}

// ACLFlag adds the flag for commands that create nodes.
func (c *Connection) ACLFlag(flags *pflag.FlagSet) {
	c.acl.text = aclOpen
	flags.Var(&c.acl, "acl", "access to new nodes: open, creator (clients with our credentials), "+
		"or a list such as sasl:ann:cdrwa,world:anyone:r")
}

// ACLFlags adds the flags for commands of recipes, which refuse nodes that exist and grant more than --acl.
func (c *Connection) ACLFlags(flags *pflag.FlagSet) {
	c.ACLFlag(flags)
	flags.BoolVar(&c.AnyACL, "acl-any", false, "accept nodes at PATH and above it that exist and grant more than --acl")
}

// ACL is the access list of nodes that are created; nil is open to all.
func (c *Connection) ACL() []zk.ACL { return c.acl.list }

// SessionTimeout is the session timeout that is asked for.
func (c *Connection) SessionTimeout() time.Duration { return time.Duration(c.sessionTimeout) }

// HasCredentials reports whether clients log in.
func (c *Connection) HasCredentials() bool {
	return len(c.auth) > 0 || c.saslUser != "" || c.tls.cert != ""
}

// Where names the server in messages.
func (c *Connection) Where() string {
	if c.Servers == "" {
		return "this user's own server"
	}
	return c.Servers
}

// config checks the flags.
func (c *Connection) config(log *slog.Logger) (zk.Config, error) {
	cfg := zk.Config{Servers: c.Servers, Timeout: time.Duration(c.sessionTimeout), MaxFrame: int(c.replyLimit)}
	if err := c.checkOwn(); err != nil {
		return cfg, err
	}
	const least, most = time.Millisecond, math.MaxInt32 * time.Millisecond // of the protocol
	if cfg.Timeout < least || cfg.Timeout > most {
		return cfg, fmt.Errorf("%s must be from %v to %v: %v",
			Source(c.flags.Lookup("session-timeout")), least, most.Truncate(time.Hour), cfg.Timeout)
	}
	if err := ownserver.CheckSockets(strings.Split(c.Servers, ",")...); err != nil {
		return cfg, fmt.Errorf("--connect: %w", err)
	}
	var err error
	if cfg.TLS, err = c.tls.client(log); err != nil {
		return cfg, err
	}
	for _, entry := range c.auth {
		scheme, credentials, ok := strings.Cut(entry, ":")
		if !ok || scheme == "" {
			return cfg, fmt.Errorf("%s must be scheme:credentials, such as digest:user:password (in the variable, "+
				"blanks separate several: a password with one is for the flag)", Source(c.flags.Lookup("auth")))
		}
		if err := checkScheme(scheme); err != nil {
			return cfg, fmt.Errorf("--auth: %w", err)
		}
		if user, password, _ := strings.Cut(credentials, ":"); scheme == "digest" && (user == "" || password == "") {
			return cfg, errors.New("--auth digest:user:password lacks the user or the password")
		}
		cfg.Auth = append(cfg.Auth, zk.Auth{Scheme: scheme, Data: []byte(credentials)})
	}
	if (c.saslUser == "") != (c.saslPasswordFile == "") {
		return cfg, errors.New("--sasl-user and --sasl-password-file need each other")
	}
	if c.saslUser != "" {
		password, err := ReadSecret(c.saslPasswordFile)
		if err != nil {
			return cfg, fmt.Errorf("--sasl-password-file: %w", err)
		}
		cfg.SASL = zk.DigestMD5{User: c.saslUser, Password: password}
	}
	if c.acl.text == aclCreator {
		if err := c.CheckCreator(); err != nil {
			return cfg, fmt.Errorf("--acl %w", err)
		}
	}
	return cfg, nil
}

// ReadSecret reads a file with a password, which may end with a line break.
func ReadSecret(file string) (string, error) {
	secret, err := os.ReadFile(file)
	return strings.TrimRight(string(secret), "\r\n"), err
}

// IsLocal reports whether a host of an address is this machine, so that what goes to it passes no network.
func IsLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// CheckCreator returns an error if there are no credentials that the access list creator could name.
func (c *Connection) CheckCreator() error {
	if len(c.auth) == 0 && c.saslUser == "" && c.tls.cert == "" {
		return errors.New(aclCreator + " needs credentials: --auth, --sasl-user or --tls-cert")
	}
	return nil
}

// checkOwn refuses flags and variables that say that a server is meant, although none is named. Otherwise a command
// would use a server that no other machine uses, and its lock would exclude none of them.
func (c *Connection) checkOwn() error {
	if c.Servers != "" {
		return nil
	}
	var err error
	c.flags.VisitAll(func(f *pflag.Flag) {
		if Given(f) && strings.HasPrefix(f.Name, "tls") {
			err = fmt.Errorf("%s needs --connect: this user's own server does not use TLS", Source(f))
		}
	})
	return err
}

// ErrNoAnswer is the cause of a context that ended because no server answered within --connect-timeout.
var ErrNoAnswer = errors.New("no server answers")

// Answering returns a context for requests, which ends after --connect-timeout with ErrNoAnswer.
func (c *Connection) Answering(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, time.Duration(c.connectTimeout), ErrNoAnswer)
}

// Open connects to the server within --connect-timeout, and returns the client and its first session. The caller closes
// the client.
func (c *Connection) Open(ctx context.Context, app *App) (*zk.Client, *zk.Session, error) {
	client, err := c.Begin(ctx, app)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := c.Answering(ctx)
	defer cancel()
	sess, err := client.Session(ctx)
	if err == nil {
		return client, sess, nil
	}
	why := client.LastError()
	_ = client.Close() // there is no session to end
	switch {
	case errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrUnsupported):
		return nil, nil, Failed(err)
	case context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), ErrNoAnswer):
		return nil, nil, context.Cause(ctx) // the caller's context ended
	}
	return nil, nil, c.NoServer(cmp.Or(why, err))
}

// Begin returns a client that connects to the server, and does not wait for that. The caller closes it. Ctx ends the
// reading of the files that the flags name, and the start of the user's own server, which --connect-timeout limits,
// too.
func (c *Connection) Begin(ctx context.Context, app *App) (*zk.Client, error) {
	level := slog.LevelError
	if app.Verbose {
		level = slog.LevelInfo
	}
	log := NewLogger(app.Stderr, level)
	cfg, err := Reading(ctx, func() (zk.Config, error) { return c.config(log) }) // a file may be a pipe
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &Error{Code: ExitUsage, Err: err}
	}
	if app.Verbose {
		cfg.Logger = log
	}
	if c.Servers == "" {
		starting, cancel := c.Answering(ctx)
		defer cancel()
		if err := c.useOwnServer(starting, app, &cfg); err != nil {
			return nil, err
		}
	}
	c.used = cfg
	client, err := zk.Open(context.WithoutCancel(ctx), cfg)
	if err != nil {
		if wrong := app.Env.wrongSetting(c.flags.Lookup("connect"), err); wrong != nil {
			return nil, wrong
		}
		return nil, &Error{Code: ExitUsage, Err: err, Hint: "see --connect"}
	}
	c.names = client.Servers()
	return client, nil
}

// Names returns the servers of the connect string, as zk.Client.Servers names them; nil before Begin has read it.
func (c *Connection) Names() []string { return c.names }

// WarnOfTimeout tells of a --session-timeout that was asked for and that the server has not granted.
func (c *Connection) WarnOfTimeout(app *App, path string, granted time.Duration) {
	if asked := c.SessionTimeout(); granted < asked && Given(c.flags.Lookup("session-timeout")) {
		app.Say("%s: the server grants a session timeout of %v, not of %v", path, granted, asked)
	}
}

// Until returns a context that also ends when a session has ended and no server has answered for --connect-timeout
// since, with ErrNoAnswer. Without it, what waits for a server would wait for ever. onEnd is called each time a session
// has ended; it may be nil. The caller calls stop.
func (c *Connection) Until(ctx context.Context, client *zk.Client, sess *zk.Session, onEnd func(cause error)) (
	until context.Context, stop func(),
) {
	until, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-until.Done():
				return
			case <-sess.Context().Done():
			}
			if onEnd != nil {
				onEnd(context.Cause(sess.Context())) //nolint:contextcheck // the session's context, not ours
			}
			answering, stop := c.Answering(until)
			next, err := client.Session(answering)
			stop()
			if err != nil {
				cancel(err)
				return
			}
			sess = next
		}
	}()
	return until, func() {
		cancel(nil)
		<-done
	}
}

// During calls f with the context of Until. If f fails because that has ended, During returns why.
func (c *Connection) During(ctx context.Context, client *zk.Client, sess *zk.Session, f func(context.Context) error,
) error {
	ctx, stop := c.Until(ctx, client, sess, nil)
	defer stop()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return c.Unanswered(err, client)
}

// Unanswered returns the error of NoServer if err says that no server has answered, otherwise err.
func (c *Connection) Unanswered(err error, client *zk.Client) error {
	if errors.Is(err, ErrNoAnswer) {
		return c.NoServer(client.LastError())
	}
	return err
}

// shortTimeout is a session timeout that a server far away or a busy one may need for an answer: an attempt to connect
// may take no longer.
const shortTimeout = time.Second

// NoServer is the error of a server that does not answer, or not as it should: with why, if that is known, and what to
// do.
func (c *Connection) NoServer(why error) error {
	what, hints := "no server answers at", []string{"check that it runs, and check --connect"}
	if c.own != nil {
		hints[0] = "its log is " + c.own.Log()
		if why != nil && strings.Contains(why.Error(), hints[0]) { // it could not be started
			hints = nil
		}
	} else if refusal, ok := c.refused(why); ok {
		what, hints[0] = "cannot use the server at", refusal
	}
	if c.SessionTimeout() < shortTimeout {
		hints = append(hints, fmt.Sprintf("--session-timeout %v may be too short for an answer", c.SessionTimeout()))
	}
	err := fmt.Errorf("%s %s", what, c.Where())
	if why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	return &Error{Code: ExitNoServer, Err: err, Hint: strings.Join(hints, "; ")}
}

// refused says what to do about a server that refuses us, or that we refuse. It reports false if no server is there.
func (c *Connection) refused(why error) (hint string, ok bool) {
	network, _ := errors.AsType[*net.OpError](why)
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	_, plain := errors.AsType[tls.RecordHeaderError](why)
	switch {
	case errors.As(why, &name):
		return "its certificate is for another name: check --connect, or set --tls-server-name", true
	case errors.As(why, &authority):
		return "its certificate is signed by an untrusted authority: name the authority with --tls-ca", true
	case errors.As(why, &invalid):
		return "its certificate is not valid", true
	case plain:
		return "it does not use TLS at that address: check the port, or leave the --tls flags out", true
	case network != nil && network.Op == "remote error" && c.tls.cert == "":
		return "it requires a client certificate: set --tls-cert and --tls-key", true
	case network != nil && network.Op == "remote error":
		return "it rejects the certificate of --tls-cert", true
	case !errors.Is(why, io.EOF) && !errors.Is(why, syscall.ECONNRESET) && !errors.Is(why, io.ErrUnexpectedEOF):
		return "", false
	case c.tls.used():
		return "it closed the connection: does it use TLS at that address, and require a client certificate?", true
	}
	return "it closed the connection: is it a ZooKeeper server, have the servers a quorum (turnstile doctor tells), " +
		"does it require TLS (--tls), and does it accept more clients?", true
}

// useOwnServer makes cfg connect to the user's own server, which is started if it does not run.
func (c *Connection) useOwnServer(ctx context.Context, app *App, cfg *zk.Config) error {
	if app.Env.Vars[ownServerVariable] == ownNever {
		where := ""
		if place := app.Env.places[ownServerVariable]; place != "" {
			where = " in " + place
		}
		return &Error{
			Code: ExitUsage,
			Err: fmt.Errorf("no server is named, and %s=%s%s forbids this user's own server",
				ownServerVariable, ownNever, where),
			Hint: "name the servers with --connect or TURNSTILE_CONNECT",
		}
	}
	own, err := ownserver.Find(app.Env.Vars)
	if err == nil {
		c.own = own
		if app.chatty() { // cron would send it by mail, every night
			own.Started = func() { app.Say("started this user's own server; its log is %s", own.Log()) }
		}
		err = own.Ensure(ctx)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ErrNoAnswer) {
			return cause
		}
		return &Error{Code: ExitNoServer, Err: err}
	}
	cfg.Servers, cfg.Dial, cfg.TLS = own.Address(), own.Dial, nil
	cfg.NoCertificates = true // one server is its own quorum: any answer of it will do
	return nil
}

// OwnServerRuns reports whether this user's own server runs.
func (c *Connection) OwnServerRuns(ctx context.Context, app *App) bool {
	own, err := ownserver.Find(app.Env.Vars)
	if err != nil {
		return false
	}
	_, runs, err := own.Running(ctx)
	return runs && err == nil
}
