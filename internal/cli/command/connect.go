package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/zk"
)

// connection is how a command reaches its server: the flags that all of them share.
type connection struct {
	servers          string
	sessionTimeout   duration
	connectTimeout   duration
	security         security
	auth             []string
	saslUser         string
	saslPasswordFile string
	acl              acl // of what is made; for commands that make something

	logger  *slog.Logger // of the client
	own     *ownServer   // the server, when none is named
	quiet   bool         // do not tell that it was started
	verbose bool         // do, whoever reads it
}

func (n *connection) flags(flags *pflag.FlagSet) {
	n.sessionTimeout, n.connectTimeout = duration(10*time.Second), duration(10*time.Second)
	flags.StringVar(&n.servers, "connect", "", "ZooKeeper `servers`, as zk1:2181,zk2:2181/chroot or unix:/path (default: this user's own server, started when needed)")
	flags.Var(&n.sessionTimeout, "session-timeout", "how long the server waits for a client that is silent before it gives its locks away")
	flags.Var(&n.connectTimeout, "connect-timeout", "how long to look for a server that answers")
	n.security.clientFlags(flags)
	flags.StringArrayVar(&n.auth, "auth", nil, "credentials as `scheme:credentials`, such as digest:user:password (repeatable)")
	flags.StringVar(&n.saslUser, "sasl-user", "", "`user` for SASL DIGEST-MD5")
	flags.StringVar(&n.saslPasswordFile, "sasl-password-file", "", "`file` with that user's password")
}

// aclFlag is for commands that make nodes.
func (n *connection) aclFlag(flags *pflag.FlagSet) {
	n.acl.text = aclOpen
	flags.Var(&n.acl, "acl", "who may use the nodes that are made: open, creator (whoever has our credentials), "+
		"or a list such as sasl:ann:cdrwa,world:anyone:r")
}

// where names the server for messages.
func (n *connection) where() string {
	if n.servers == "" {
		return "this user's own server"
	}
	return n.servers
}

// config checks the flags.
func (n *connection) config() (zk.Config, error) {
	cfg := zk.Config{Servers: n.servers, Timeout: time.Duration(n.sessionTimeout), Logger: n.logger}
	if err := checkSockets(strings.Split(n.servers, ",")...); err != nil {
		return cfg, fmt.Errorf("--connect: %w", err)
	}
	var err error
	if cfg.TLS, err = n.security.client(); err != nil {
		return cfg, err
	}
	for _, entry := range n.auth {
		scheme, credentials, ok := strings.Cut(entry, ":")
		if !ok || scheme == "" {
			return cfg, errors.New("--auth must be scheme:credentials, such as digest:user:password")
		}
		if user, password, _ := strings.Cut(credentials, ":"); scheme == "digest" && (user == "" || password == "") {
			return cfg, errors.New("--auth digest:user:password has no user or no password")
		}
		cfg.Auth = append(cfg.Auth, zk.Auth{Scheme: scheme, Data: []byte(credentials)})
	}
	if (n.saslUser == "") != (n.saslPasswordFile == "") {
		return cfg, errors.New("--sasl-user and --sasl-password-file need each other")
	}
	if n.saslUser != "" {
		password, err := os.ReadFile(n.saslPasswordFile)
		if err != nil {
			return cfg, fmt.Errorf("--sasl-password-file: %w", err)
		}
		cfg.SASL = &zk.SASL{User: n.saslUser, Password: strings.TrimRight(string(password), "\r\n")}
	}
	if n.acl.text == aclCreator && len(cfg.Auth) == 0 && cfg.SASL == nil && n.security.cert == "" {
		return cfg, errors.New("--acl creator needs credentials: --auth, --sasl-user or --tls-cert")
	}
	return cfg, nil
}

var errNoAnswer = errors.New("no server answers")

// open connects to the server, within the time that --connect-timeout gives, and returns the client and its first session. The caller
// closes the client.
func (c *cli) open(ctx context.Context, n *connection) (*zk.Client, *zk.Session, error) {
	cfg, err := n.config()
	if err != nil {
		return nil, nil, &exitError{code: ExitUsage, err: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(n.connectTimeout), errNoAnswer)
	defer cancel()
	if n.servers == "" {
		if err := c.useOwnServer(ctx, n, &cfg); err != nil {
			return nil, nil, err
		}
	}
	return n.connect(ctx, cfg)
}

func (n *connection) connect(ctx context.Context, cfg zk.Config) (*zk.Client, *zk.Session, error) {
	client, err := zk.Open(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return nil, nil, &exitError{code: ExitUsage, err: err, hint: "see --connect"}
	}
	sess, err := client.Session(ctx)
	if err == nil {
		return client, sess, nil
	}
	why := client.LastError()
	_ = client.Close() // there is no session to end
	switch {
	case errors.Is(err, zk.ErrAuthFailed):
		return nil, nil, failed(err)
	case context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), errNoAnswer):
		return nil, nil, context.Cause(ctx) // called off
	}
	return nil, nil, n.noServer(cmp.Or(why, err))
}

// minded returns a context that also ends when a session has ended and no server answers for as long as --connect-timeout says. What waits
// under it would wait for ever by itself. ended is told why a session has ended. The caller calls stop.
func (n *connection) minded(ctx context.Context, client *zk.Client, sess *zk.Session, ended func(cause error)) (calm context.Context, stop func()) {
	calm, cancel := context.WithCancelCause(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-calm.Done():
				return
			case <-sess.Context().Done():
			}
			ended(context.Cause(sess.Context())) //nolint:contextcheck // the session's end, not ours
			find, stop := context.WithTimeoutCause(calm, time.Duration(n.connectTimeout), errNoAnswer)
			next, err := client.Session(find)
			stop()
			if err != nil {
				cancel(err)
				return
			}
			sess = next
		}
	}()
	return calm, func() {
		cancel(nil)
		<-gone
	}
}

// noServer says that no server answers, or none as it should, why, and what to do.
func (n *connection) noServer(why error) error {
	what, hint := "no server answers at", "see whether it runs, and check --connect"
	if n.own != nil {
		hint = "its log is " + n.own.log()
	} else if told, ok := n.refused(why); ok {
		what, hint = "there is no agreement with the server at", told
	}
	err := fmt.Errorf("%s %s", what, n.where())
	if why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	return &exitError{code: ExitNoServer, err: err, hint: hint}
}

// refused says what to do about a server that is there and does not want us, or that we do not want. It reports false
// if none is there.
func (n *connection) refused(why error) (hint string, ok bool) {
	network, _ := errors.AsType[*net.OpError](why)
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	_, plain := errors.AsType[tls.RecordHeaderError](why)
	switch {
	case errors.As(why, &name):
		return "its certificate is for another name: check --connect, or say for which with --tls-server-name", true
	case errors.As(why, &authority):
		return "its certificate is by an authority that is not trusted: name that with --tls-ca", true
	case errors.As(why, &invalid):
		return "its certificate is not valid", true
	case plain:
		return "it does not speak TLS at that address: check the port, or leave the --tls flags out", true
	case network != nil && network.Op == "remote error" && n.security.cert == "":
		return "it wants a client's certificate: name one with --tls-cert and --tls-key", true
	case network != nil && network.Op == "remote error":
		return "it does not take the certificate of --tls-cert", true
	case !errors.Is(why, io.EOF) && !errors.Is(why, syscall.ECONNRESET) && !errors.Is(why, io.ErrUnexpectedEOF):
		return "", false
	case n.security.used():
		return "it has hung up on us: does it speak TLS at that address, and does it want a client's certificate?", true
	}
	return "it has hung up on us: is it a ZooKeeper server, does it want TLS at that address (--tls), " +
		"and has it room for one more client?", true
}

// useOwnServer makes cfg connect to the user's own server, which is started if it is not there.
func (c *cli) useOwnServer(ctx context.Context, n *connection, cfg *zk.Config) error {
	own, err := findOwnServer(c.env)
	if err == nil {
		n.own = own
		if n.verbose || !n.quiet && atTerminal(c.stderr) { // cron would send it by mail, every night
			own.started = func() {
				fmt.Fprintln(c.stderr, "turnstile: started this user's own server; its log is", own.log())
			}
		}
		err = own.ensure(ctx)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errNoAnswer) {
			return cause
		}
		return &exitError{code: ExitNoServer, err: err}
	}
	cfg.Servers, cfg.Dial, cfg.TLS = "unix:"+own.sockets[0], own.dial, nil
	cfg.NoCertificates = true // one server is its own quorum: any answer of it will do
	return nil
}
