package cli

// turnstile sessions close.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxReason bounds the reason for ending a session, in bytes: it is for the server's log.
const maxReason = 1 << 10

const sessionsHint = "turnstile sessions lists them, such as 0x1a1fc98997c0000"

// closedJSON is what "turnstile sessions close --json" prints for a session.
type closedJSON struct {
	Session string `json:"session"`
}

func newSessionsClose(app *command.App) *cobra.Command {
	a := command.Access{App: app, Path: "/"}
	var reason string
	cmd := &cobra.Command{
		Use:   "close [flags] SESSION...",
		Short: "End sessions of the embedded server, with all that they hold",
		Long: `Ends sessions by force: their ephemeral nodes are deleted, so others get what they hold at once, although
the programs may still be working. These learn that their sessions have expired. The reason goes into the
server's log, with the client that has asked.

Only turnstile serve can do that, for its superuser and on its unix socket. ZooKeeper's servers cannot end a
session for somebody else: there, ask the holder with turnstile revoke --session SESSION PATH, and force it.

Exit codes: 0; 1 there is no such session; 64 usage; 69 no server; 70 the server cannot end sessions; 77 access
denied.`,
		Example: `  turnstile sessions close 0x1a1fc98997c0000 --reason 'its machine is gone, ticket 4711'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef(cmd, "SESSION is missing: %s", sessionsHint)
			}
			switch {
			case strings.TrimSpace(reason) == "":
				return command.Usagef(cmd, "--reason is missing: say why, for the server's log")
			case len(reason) > maxReason:
				return command.Usagef(cmd, "--reason is too long: use at most %d bytes", maxReason)
			}
			ids := make([]int64, len(args))
			for i, arg := range args {
				var ok bool
				if ids[i], ok = parseSession(arg); !ok {
					return command.Usagef(cmd, "%q is no session: %s", arg, sessionsHint)
				}
			}
			return a.With(cmd.Context(), func(ctx context.Context, client *zk.Client) error {
				return closeSessions(ctx, &a, client, ids, reason)
			})
		},
	}
	a.Flags(cmd, "one JSON object per session")
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that says why, for the server's log")
	return cmd
}

// parseSession parses the number of a session, as command.SessionID writes it or without the 0x.
func parseSession(text string) (id int64, ok bool) {
	number, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 64)
	return int64(number), err == nil && number != 0 //nolint:gosec // a session's number has 64 bits
}

func closeSessions(ctx context.Context, a *command.Access, client *zk.Client, ids []int64, reason string) error {
	var missing error
	for _, id := range ids {
		name := command.SessionID(id)
		err := closeSession(ctx, client, id, reason)
		switch {
		case errors.Is(err, errNoSession):
			missing = &command.Error{Code: command.ExitNotAcquired}
			a.App.Complain("there is no session %s, or it is this command's own", name)
			continue
		case err != nil:
			return err
		}
		if err := a.App.Report(a.AsJSON, closedJSON{name}, "%s\n", name); err != nil {
			return err
		}
	}
	return missing
}

var errNoSession = errors.New("there is no such session")

// closeSession has the server end a session.
func closeSession(ctx context.Context, client *zk.Client, id int64, reason string) error {
	sess, err := client.Session(ctx)
	if err != nil {
		return err
	}
	_, err = sess.Set(ctx, server.SessionsPath+"/"+command.SessionID(id), []byte(reason), -1)
	switch {
	case errors.Is(err, zk.BadArguments):
		return errNoSession
	case errors.Is(err, zk.NoAuth):
		return superuserOnly("ends sessions")
	case errors.Is(err, zk.NoNode):
		return &command.Error{
			Code: command.ExitSoftware, Err: errors.New("this server cannot end the session of another client"),
			Hint: fmt.Sprintf("only turnstile serve can, without a chroot in --connect; "+
				"turnstile revoke --session %s PATH asks for a lock", command.SessionID(id)),
		}
	}
	return err
}

// superuserOnly is the error of what a server does for its superuser alone, and on its unix socket.
func superuserOnly(does string) *command.Error {
	return &command.Error{
		Code: command.ExitNoAccess,
		Err:  fmt.Errorf("the server %s for its superuser alone, and on its unix socket", does),
		Hint: "name the socket with --connect unix:PATH, or see --auth, --sasl-user and --tls-cert",
	}
}
