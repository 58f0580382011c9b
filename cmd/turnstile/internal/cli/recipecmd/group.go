package recipecmd

// turnstile group.

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

const groupPath = "/workers"

// memberJSON is a member of a group.
type memberJSON struct {
	ID      string  `json:"id"`
	Data    *string `json:"data,omitempty"`
	Base64  []byte  `json:"data_base64,omitempty"`
	Node    string  `json:"node"`
	Session string  `json:"session"`
}

func newMemberJSON(m member.Member) memberJSON {
	j := memberJSON{ID: m.ID, Node: m.Node, Session: command.SessionID(m.Session)}
	switch {
	case m.Data == nil:
	case utf8.Valid(m.Data):
		text := string(m.Data)
		j.Data = &text
	default:
		j.Base64 = m.Data
	}
	return j
}

// membersJSON is what "turnstile group watch --json" prints.
type membersJSON struct {
	Path    string       `json:"path"`
	Members []memberJSON `json:"members"`
	Time    string       `json:"time"`
}

func newGroup(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "group",
		Short: "Join a group of processes, and see who is in it",
		Long: `Joins a group for as long as a command runs, and shows the members of one. A process that dies is out of
the group once its session has ended.`,
		Example: `  turnstile group join /workers --id "$(hostname)" -- ./worker
  turnstile group ls /workers`,
	}, newGroupJoin(app), newGroupList(app), newGroupWatch(app))
}

func groupLayoutFlag(cmd *cobra.Command) *command.Choice {
	layout := command.NewChoice("member", "party", "shallow")
	cmd.Flags().Var(&layout, "layout",
		"whose group: that of Curator's GroupMember, or of kazoo's Party or ShallowParty")
	command.VariablesOf("group", cmd.Flags(), "layout")
	return &layout
}

// openGroup returns the group.
func (a *access) openGroup(client *zk.Client, layout *command.Choice) (*member.Group, error) {
	layouts := map[string]member.GroupLayout{
		"member": member.GroupMember, "party": member.Party, "shallow": member.ShallowParty,
	}
	return member.NewGroup(client, a.Path, member.GroupConfig{
		Layout: layouts[layout.Value], ACL: a.Connection.ACL(), AnyACL: a.Connection.AnyACL,
	})
}

func newGroupJoin(app *command.App) *cobra.Command {
	s := newStay(app)
	var id, data string
	var layout *command.Choice
	cmd := s.run(&cobra.Command{
		Use:   "join [flags] PATH [-- COMMAND [ARG...]]",
		Short: "Be a member of a group while a command runs",
		Long: `Joins the group at PATH, runs the command, and leaves when it has ended. Without a command it prints its
id and stays until standard input ends or a signal comes. After the loss of its session it joins again. With
the layout member, ids must differ: it waits until another session with its id has ended.

The command's environment has TURNSTILE_PATH and TURNSTILE_ID.` + fmt.Sprintf(stayExit, ""),
		Example: `  turnstile group join /workers --id w1 --data 10.0.0.1:8080 -- ./worker
  turnstile group join /workers </dev/null`,
	}, func(cmd *cobra.Command, args []string) error {
		if err := s.path(cmd, args, groupPath, 1); err != nil {
			return err
		}
		if cmd.Flags().Changed("data") && layout.Value != "member" {
			return command.Usagef(cmd, "--data is for --layout member: kazoo's parties have none")
		}
		return nil
	}, func(ctx context.Context, client *zk.Client) (place, error) {
		if id == "" {
			id, _ = os.Hostname() // without a name, Join says that the id is missing
		} else if err := checkName("--id", id); err != nil && layout.Value != "party" { // which has it in the data
			return place{}, err
		}
		g, err := s.openGroup(client, layout)
		if err != nil {
			return place{}, misuse("%w", err)
		}
		var payload []byte
		if data != "" {
			payload = []byte(data)
		}
		m, err := g.Join(ctx, id, payload)
		if err != nil {
			return place{}, err
		}
		return place{
			env: []string{"TURNSTILE_ID=" + id}, text: id, leave: soon(m.LeaveWait),
			json: map[string]string{"path": s.Path, "id": id, "node": m.Node()},
		}, nil
	})
	flags := cmd.Flags()
	layout = groupLayoutFlag(cmd)
	flags.StringVar(&id, "id", "", "`name` of this member (default: the host's name)")
	flags.StringVar(&data, "data", "", "`text` that the others see with it")
	command.MayBeEmpty(flags, "data")
	return cmd
}

func newGroupList(app *command.App) *cobra.Command {
	a := newAccess(app)
	var layout *command.Choice
	cmd := a.run(&cobra.Command{
		Use:   "ls PATH",
		Short: "Show the members of a group",
		Long:  "Shows the members.\n\nExit codes: 0, also if there is none; 64 usage; 69 no server; 77 access denied.",
		Example: `  turnstile group ls /workers
  turnstile group ls /workers --json | jq -r .id`,
	}, groupPath, "one JSON object per member", func(ctx context.Context, client *zk.Client) error {
		g, err := a.openGroup(client, layout)
		if err != nil {
			return misuse("%w", err)
		}
		members, err := g.Members(ctx)
		if err != nil {
			return err
		}
		if a.AsJSON {
			for _, m := range members {
				if err := app.JSON(newMemberJSON(m)); err != nil {
					return err
				}
			}
			return nil
		}
		if len(members) == 0 {
			app.Say("%s has no members", a.Path)
			return nil
		}
		t := app.Table()
		_ = command.Fprintf(t, "ID\tSESSION\tDATA\n") // Flush says whether it could be written
		for _, m := range members {
			data := command.Excerpt(string(m.Data))
			_ = command.Fprintf(t, "%s\t%s\t%s\n", command.Plain(m.ID), command.SessionID(m.Session), data)
		}
		return command.OutputError(t.Flush())
	})
	layout = groupLayoutFlag(cmd)
	return cmd
}

func newGroupWatch(app *command.App) *cobra.Command {
	a := newAccess(app)
	var layout *command.Choice
	cmd := a.run(&cobra.Command{
		Use:   "watch PATH",
		Short: "Print the members of a group, now and after every change",
		Long: `Prints a line with the ids of the members now, and after every change, until a signal comes. It may skip
changes that follow each other quickly, but never the last one. The line of a group without members is empty.

Exit codes: 128+N for signal N; 64 usage; 69 no server; 77 access denied.`,
		Example: `  turnstile group watch /workers
  turnstile group watch /workers --json | jq '.members | length'`,
	}, groupPath, "one JSON object per change", func(ctx context.Context, client *zk.Client) error {
		g, err := a.openGroup(client, layout)
		if err != nil {
			return misuse("%w", err)
		}
		for members, err := range g.Watch(ctx) {
			if err != nil {
				return err
			}
			j := membersJSON{a.Path, []memberJSON{}, command.Timestamp(time.Now())}
			ids := make([]string, 0, len(members))
			for _, m := range members {
				j.Members = append(j.Members, newMemberJSON(m))
				ids = append(ids, command.Plain(m.ID))
			}
			if err := app.Report(a.AsJSON, j, "%s\n", strings.Join(ids, " ")); err != nil {
				return err
			}
		}
		return nil
	})
	layout = groupLayoutFlag(cmd)
	return cmd
}
