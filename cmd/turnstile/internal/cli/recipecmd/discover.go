package recipecmd

// turnstile discover.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/zk"
)

func newDiscover(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "discover",
		Short: "Register a service, and find those that are registered",
		Long: `Registers an instance of a service for as long as a command runs, and lists instances. The nodes and
their JSON are those of curator-x-discovery, so programs in Java find them.`,
		Example: `  turnstile discover register users --base /services --port 8080 -- ./users-server
  turnstile discover ls users --base /services`,
	}, newDiscoverRegister(app), newDiscoverList(app))
}

// baseFlag adds --base.
func (a *access) baseFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.Path, "base", "/services", "`path` that has the services below it")
}

// registry returns the registry at --base.
func (a *access) registry(client *zk.Client) (*discovery.Registry, error) {
	cfg := discovery.Config{ACL: a.Connection.ACL(), AnyACL: a.Connection.AnyACL}
	r, err := discovery.NewRegistry(client, a.Path, cfg)
	if err != nil {
		return nil, misuse("--base: %w", err)
	}
	return r, nil
}

// oneService takes the name of a service from args.
func oneService(cmd *cobra.Command, args []string, required bool) (string, error) {
	switch {
	case len(args) > 1:
		return "", command.Usagef(cmd, "unexpected argument %q", args[1])
	case len(args) == 1:
		return args[0], checkName("SERVICE", args[0])
	case required:
		return "", command.Usagef(cmd, "SERVICE is missing: the name that clients look for")
	}
	return "", nil
}

func newDiscoverRegister(app *command.App) *cobra.Command {
	s := newStay(app)
	var i discovery.Instance
	var payload string
	cmd := s.run(&cobra.Command{
		Use:   "register [flags] SERVICE [-- COMMAND [ARG...]]",
		Short: "Register an instance of a service while a command runs",
		Long: `Registers an instance, runs the command, and unregisters when it has ended. Without a command it prints
the instance's id and stays until standard input ends or a signal comes. After the loss of its session it
registers again. Clients find the instance before the command runs: a server that takes long to start may
run turnstile discover register itself, without a command, once it is ready.

The command's environment has TURNSTILE_PATH, which is --base, and TURNSTILE_ID, the instance's.` +
			fmt.Sprintf(stayExit, ""),
		Example: `  turnstile discover register users --address 10.0.0.1 --port 8080 -- ./users-server`,
	}, func(cmd *cobra.Command, args []string) (err error) {
		i.Service, err = oneService(cmd, args, true)
		return err
	}, func(ctx context.Context, client *zk.Client) (place, error) {
		if payload != "" {
			if !json.Valid([]byte(payload)) {
				return place{}, misuse("--payload must be JSON")
			}
			i.Payload = json.RawMessage(payload)
		}
		if i.ID != "" {
			if err := checkName("--id", i.ID); err != nil {
				return place{}, err
			}
		}
		if max(i.Port, i.TLSPort) > maxPort || min(i.Port, i.TLSPort) < 0 {
			return place{}, misuse("a port must be from 0 to %d", maxPort)
		}
		r, err := s.registry(client)
		if err != nil {
			return place{}, err
		}
		g, err := r.Register(ctx, i)
		if err != nil {
			return place{}, err
		}
		made := g.Instance()
		return place{
			env: []string{"TURNSTILE_ID=" + made.ID}, text: made.ID, json: made, leave: soon(g.UnregisterWait),
		}, nil
	})
	s.baseFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&i.ID, "id", "", "`name` of this instance (default: a new one)")
	flags.StringVar(&i.Address, "address", "", "host `name` or IP address (default: one of this machine)")
	flags.IntVar(&i.Port, "port", 0, "its port")
	flags.IntVar(&i.TLSPort, "tls-port", 0, "its port for TLS")
	flags.StringVar(&i.URI, "uri", "", "how clients make a `URL` of it, such as {scheme}://{address}:{port}/api")
	flags.StringVar(&payload, "payload", "", "`JSON` for the clients")
	command.MayBeEmpty(flags, "payload")
	return cmd
}

const maxPort = 65535

func newDiscoverList(app *command.App) *cobra.Command {
	a := newAccess(app)
	service := ""
	cmd := a.run(&cobra.Command{
		Use:   "ls [SERVICE]",
		Short: "List services, or the instances of one",
		Long: `Lists the instances of a service; without SERVICE the names of the services. A service whose instances
have gone may be listed for a while.

Exit codes: 0, also if there is none; 64 usage; 69 no server; 77 access denied.`,
		Example: `  turnstile discover ls
  turnstile discover ls users --json | jq -r .address`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			service, err = oneService(cmd, args, false)
			return err
		},
	}, "", "one JSON object per service or instance", func(ctx context.Context, client *zk.Client) error {
		r, err := a.registry(client)
		if err != nil {
			return err
		}
		if service == "" {
			return a.printServices(ctx, r)
		}
		list, err := r.Instances(ctx, service)
		if err != nil {
			return err
		}
		return a.printInstances(list)
	})
	a.baseFlag(cmd)
	return cmd
}

func (a *access) printServices(ctx context.Context, r *discovery.Registry) error {
	names, err := r.Services(ctx)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := a.App.ReportLine(a.AsJSON, map[string]string{"name": name}, "%s", name); err != nil {
			return err
		}
	}
	return nil
}

func (a *access) printInstances(list []discovery.Instance) error {
	if a.AsJSON {
		for _, i := range list {
			if err := a.App.JSON(i); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		a.App.Say("no instance is registered")
		return nil
	}
	t := a.App.Table()
	_ = command.Fprintf(t, "ID\tADDRESS\tPORT\tTLS\tENABLED\n") // Flush says whether it could be written
	for _, i := range list {
		_ = command.Fprintf(t, "%s\t%s\t%s\t%s\t%t\n",
			command.Plain(i.ID), command.Plain(i.Address), port(i.Port), port(i.TLSPort), !i.Disabled)
	}
	return command.OutputError(t.Flush())
}

// port writes a port for people.
func port(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
