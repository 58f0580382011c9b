package cli

// Where turnstile top and turnstile dashboard have what they show from.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/treecmd"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/doctor"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/internal/words"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// reach is how a screen reaches an ensemble.
type reach struct{ command.Access }

// newSource returns a source of what a survey shows, and of what a client finds besides that.
func newSource(access command.Access, client *zk.Client, s *survey.Survey) ensemble.Source {
	r := reach{access}
	return ensemble.Source{
		Next:  s.Next,
		Owner: owner,
		Line: func(ctx context.Context, path string) ([]lock.Contender, error) {
			return lineOf(ctx, client, path)
		},
		Records: func(ctx context.Context, path string) ([]lock.Record, error) {
			return lock.Revocations(ctx, client, path)
		},
		Deadlocks: func(ctx context.Context) ([]lock.FoundDeadlock, error) {
			return lock.Deadlocks(ctx, client, "")
		},
		Queue: func(ctx context.Context, path string, consumers int, before ensemble.Rates) (ensemble.Queue, error) {
			return countQueue(ctx, client, path, consumers, before)
		},
		Items: func(ctx context.Context, path, state string, most int) ([]ensemble.Item, error) {
			return firstItems(ctx, client, path, state, most)
		},
		Item: func(ctx context.Context, path, state, id string, data bool) (ensemble.Item, error) {
			return findItem(ctx, client, path, state, id, data)
		},
		Node: func(ctx context.Context, path string, data bool) (ensemble.Node, error) {
			return nodeAt(ctx, client, path, data)
		},
		Sessions: func(ctx context.Context) ([]ensemble.Session, []string) { return r.sessions(ctx, client) },
		Servers:  func(ctx context.Context) []ensemble.Server { return r.servers(ctx, client) },
		Findings: func(ctx context.Context) ([]ensemble.Finding, error) { return r.findings(ctx, client) },
		Revoke: func(
			ctx context.Context, path string, holders map[string]lock.Token, reason string, force bool,
		) (string, error) {
			return r.revoke(ctx, client, path, holders, reason, force)
		},
		Pause: func(ctx context.Context, path string, pause bool, reason string) error {
			return pauseQueue(ctx, client, path, pause, reason)
		},
		Letters: func(ctx context.Context, path string, remove bool, most int, tell func(n int)) error {
			return moveLetters(ctx, client, path, remove, most, tell)
		},
		EndSession: func(ctx context.Context, id int64, reason string) error {
			return closeSession(ctx, client, id, reason)
		},
	}
}

// lineOf returns the line of a lock, with what revocations have overwritten.
func lineOf(ctx context.Context, client *zk.Client, path string) ([]lock.Contender, error) {
	list, err := lock.Inspect(ctx, client, path)
	if err == nil {
		err = restoreData(ctx, client, path, list)
	}
	return list, err
}

// countQueue counts the items of a queue, and tells of so many of its consumers.
func countQueue(
	ctx context.Context, client *zk.Client, path string, consumers int, before ensemble.Rates,
) (ensemble.Queue, error) {
	n, err := queue.Summarize(ctx, client, path, consumers)
	if err != nil {
		return ensemble.Queue{}, err
	}
	counts := ensemble.Queue{
		Rates: before.After(n, time.Now()), Waiting: n.Waiting,
		Ready: n.Ready, Delayed: n.Delayed, Claimed: n.Claimed, Dead: n.Dead, Consumers: n.Consumers,
	}
	if !n.Oldest.IsZero() {
		counts.Oldest = max(0, time.Since(n.Oldest))
	}
	if n.Paused != nil {
		counts.Paused = fmt.Sprintf("%s pid %d: %s", n.Paused.Host, n.Paused.PID, n.Paused.Reason)
	}
	for _, c := range n.Busiest {
		who := consumerName(&c.Consumer)
		counts.Busiest = append(counts.Busiest, ensemble.Consumer{
			ID: c.ID, Who: who, Session: command.SessionID(c.Session), Since: c.Since, Claimed: c.Claimed,
		})
	}
	return counts, nil
}

// consumerName returns who a consumer is.
func consumerName(c *queue.Consumer) string {
	if c.Host == "" {
		return c.ID
	}
	return fmt.Sprintf("%s pid %d", c.Host, c.PID)
}

// itemStates are the states of items by their names.
var itemStates = map[string]queue.State{ //nolint:gochecknoglobals // a table
	queue.Ready.String(): queue.Ready, queue.Delayed.String(): queue.Delayed, queue.Claimed.String(): queue.Claimed,
	queue.Waiting.String(): queue.Waiting, queue.Dead.String(): queue.Dead,
}

// maxItemText is how many bytes are kept of each text that an item has: pages cut it, too.
const maxItemText = 2000

// kept returns the beginning of a text, without the rest of what it was read with.
func kept(s string) string { return strings.Clone(s[:min(len(s), maxItemText)]) }

// itemOf returns what is told of an item at a glance.
func itemOf(x queue.Peeked) ensemble.Item {
	i := ensemble.Item{
		ID: x.ID, State: x.State.String(), Priority: x.Priority, Attempts: x.Attempts, Bytes: len(x.Body),
		Put: x.EnqueuedAt, Due: x.DueAt, Died: x.DiedAt, Reason: kept(x.Reason), Group: kept(x.Group),
		Timeout: x.Timeout,
	}
	if x.Consumer != nil {
		i.Consumer = kept(consumerName(x.Consumer))
	}
	return i
}

// wholeItem returns what is told of an item that is looked at, with its body and headers only if data is set.
func wholeItem(x queue.Peeked, data bool) ensemble.Item {
	i := itemOf(x)
	for _, f := range x.Failures[max(0, len(x.Failures)-ensemble.MaxFailures):] {
		i.Failures = append(i.Failures, ensemble.Failure{At: f.At, Reason: kept(f.Reason)})
	}
	i.Headed = len(x.Headers)
	if !data {
		return i
	}
	for _, name := range slices.Sorted(maps.Keys(x.Headers))[:min(len(x.Headers), ensemble.MaxHeaders)] {
		i.Headers = append(i.Headers, ensemble.Header{Name: kept(name), Value: kept(x.Headers[name])})
	}
	i.Body = slices.Clone(x.Body[:min(len(x.Body), ensemble.MaxData)])
	return i
}

// How much is read of a queue for a page.
const (
	listTime  = 5 * time.Second  // for a list
	listBytes = 8 << 20          // of bodies, for a list
	findTime  = 10 * time.Second // to find an item
	findFirst = 1000             // items in the state that it was in
)

// firstItems returns the first items of a queue that are in a state.
func firstItems(ctx context.Context, client *zk.Client, path, state string, most int) ([]ensemble.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var list []ensemble.Item
	bytes := 0
	for x, err := range queue.ItemsOf(ctx, client, path, itemStates[state]) {
		switch bytes += len(x.Body); {
		case err != nil:
			return list, tooLong(ctx, client, err)
		case len(list) == most:
			return list, nil
		case bytes > listBytes:
			return list, ensemble.ErrTooMany
		}
		list = append(list, itemOf(x))
	}
	return list, nil
}

// tooLong returns ErrTooMany for an error of reading that has taken too long although a server answers.
func tooLong(ctx context.Context, client *zk.Client, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) && client.LastError() == nil {
		return ensemble.ErrTooMany
	}
	return err
}

// findItem returns the item of a queue with an id. It looks first among those that come first in the state that the
// item may be in: a list has shown it there.
func findItem(
	ctx context.Context, client *zk.Client, path, state, id string, data bool,
) (ensemble.Item, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if s, ok := itemStates[state]; ok {
		looked := 0
		for x, err := range queue.ItemsOf(ctx, client, path, s) {
			if err == nil && x.ID == id {
				return wholeItem(x, data), nil
			}
			if looked++; err != nil || looked == findFirst {
				break
			}
		}
	}
	x, err := queue.ItemOf(ctx, client, path, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return ensemble.Item{}, ensemble.ErrNotFound
	case err != nil:
		return ensemble.Item{}, tooLong(ctx, client, err)
	}
	return wholeItem(x, data), nil
}

// pauseQueue pauses a queue, or resumes it.
func pauseQueue(ctx context.Context, client *zk.Client, path string, pause bool, reason string) error {
	q, err := queue.New(client, path, queue.Config{})
	if err != nil {
		return err
	}
	if !pause {
		return errors.Join(q.Resume(ctx), q.Close(ctx))
	}
	if err = q.Pause(ctx, reason); err == nil {
		if now, perr := q.Paused(ctx); perr == nil && now != nil && now.Reason != reason {
			err = fmt.Errorf("it was paused before: %s", now.Reason)
		}
	}
	return errors.Join(err, q.Close(ctx))
}

// letterBatch is how many dead letters are moved before that is told.
const letterBatch = 100

// moveLetters puts the first dead letters of a queue back, or removes them. Those that die meanwhile are behind them.
// It lists them once, and each batch is looked up once more, at the front, when it is moved.
func moveLetters(ctx context.Context, client *zk.Client, path string, remove bool, most int, tell func(n int)) error {
	q, err := queue.New(client, path, queue.Config{})
	if err != nil {
		return err
	}
	move := q.Requeue
	if remove {
		move = q.PurgeDead
	}
	var ids []string
	flush := func() error {
		n, err := move(ctx, ids...)
		ids = ids[:0]
		tell(n)
		return err
	}
	done := 0 // also those that others are quicker to move
	for letter, lerr := range q.DeadLetters(ctx) {
		if err = lerr; err != nil {
			break
		}
		done++
		if ids = append(ids, letter.ID); len(ids) == letterBatch {
			err = flush()
		}
		if err != nil || done == most {
			break
		}
	}
	if len(ids) > 0 { // also if others cannot be read
		err = cmp.Or(flush(), err)
	}
	return errors.Join(err, q.Close(ctx))
}

// nodeAt reads a node and its first children. They are read one after the other, so they may be of different moments.
func nodeAt(ctx context.Context, client *zk.Client, path string, data bool) (n ensemble.Node, err error) {
	names, stat, err := client.Children(ctx, path)
	if err != nil {
		return n, err
	}
	n.Stat = stat
	if n.ACL, _, err = client.GetACL(ctx, path); err != nil && !errors.Is(err, zk.NoAuth) {
		return n, err
	}
	if data {
		if n.Data, _, err = client.Get(ctx, path); err != nil && !errors.Is(err, zk.NoAuth) {
			return n, err
		}
		n.Data = slices.Clone(n.Data[:min(len(n.Data), ensemble.MaxData)])
	}
	slices.Sort(names)
	hidden := func(string) error { return nil } // it is one of those that were not read
	err = treecmd.EachChild(ctx, client, path, names[:min(len(names), ensemble.MaxNames)], hidden,
		func(name string, s zk.Stat) error {
			n.Children = append(n.Children, ensemble.Child{Name: name, Stat: s})
			return nil
		})
	return n, err
}

// sessions returns what the servers say of the sessions.
func (r reach) sessions(ctx context.Context, client *zk.Client) (list []ensemble.Session, lacks []string) {
	s := &sessions{Access: r.Access}
	found, missing := s.known(ctx, client)
	found.forgetOurs(ctx, client)
	for _, lack := range missing {
		lacks = append(lacks, string(lack))
	}
	for _, f := range found {
		list = append(list, ensemble.Session{
			ID: f.id, Server: f.server, Address: f.address, Timeout: f.timeout, Answered: f.answered,
			Ephemerals: f.ephemerals,
		})
	}
	return list, lacks
}

// findings returns what turnstile doctor finds wrong, without the servers' HTTP commands: their usual port may be that
// of another program here.
func (r reach) findings(ctx context.Context, client *zk.Client) (list []ensemble.Finding, err error) {
	report, err := doctor.Examine(ctx, client, doctor.Config{
		Root: r.Path, Asked: r.Connection.SessionTimeout(), Credentials: r.Connection.HasCredentials(),
		Word: r.Connection.Word,
	})
	if err != nil {
		return nil, err
	}
	for _, f := range report.Findings {
		if f.Severity != doctor.Note {
			list = append(list, ensemble.Finding{Error: f.Severity == doctor.Error, Text: f.Text, Remedy: f.Remedy})
		}
	}
	return list, nil
}

// servers asks the servers for their state.
func (r reach) servers(ctx context.Context, client *zk.Client) []ensemble.Server {
	addresses := client.Servers()
	list := make([]ensemble.Server, len(addresses))
	var group sync.WaitGroup
	for i, address := range addresses {
		group.Go(func() {
			text, err := r.Connection.Word(ctx, address, "srvr", command.MaxWord)
			list[i] = serverOf(words.Stats(text))
			list[i].Address, list[i].Err, list[i].Watches = address, err, -1
			text, _ = r.Connection.Word(ctx, address, "mntr", command.MaxWord) // many servers do not answer it
			if n, ok := words.Number(words.Gauges(text), "watch_count"); ok {
				list[i].Watches = n
			}
		})
	}
	group.Wait()
	return list
}

// serverOf returns what an answer to srvr says of a server.
func serverOf(stats map[string]string) ensemble.Server {
	s := ensemble.Server{Latency: stats["Latency min/avg/max"], Mode: stats["Mode"]}
	s.Version, _, _ = strings.Cut(stats["Zookeeper version"], "-")
	s.Version, _, _ = strings.Cut(s.Version, ",")
	if parts := strings.Split(s.Latency, "/"); len(parts) == 3 {
		if ms, err := strconv.ParseFloat(parts[1], 64); err == nil {
			digits := 2
			if ms >= 100 { // top has room for eight letters
				digits = 0
			}
			s.Latency = fmt.Sprintf("%.*f ms", digits, ms)
		}
	}
	s.Connections, _ = words.Number(stats, "Connections") // 0 if it does not say so
	s.Outstanding, _ = words.Number(stats, "Outstanding")
	s.Nodes, _ = words.Number(stats, "Node count")
	s.Zxid, _ = strconv.ParseInt(stats["Zxid"], 0, 64)
	return s
}

// forcedAfter is for how long holders are asked.
const forcedAfter = 10 * time.Second

// revoke asks holders to release a lock, and says what became of them.
func (r reach) revoke(
	ctx context.Context, client *zk.Client, path string, holders map[string]lock.Token, reason string, force bool,
) (string, error) {
	// Only those that the user has seen: another one may hold it by now.
	list, err := lock.Revoke(ctx, client, path, lock.RevokeOptions{
		Reason: reason, Grace: forcedAfter, Force: force, Record: true, ACL: r.Connection.ACL(),
		Holder: func(c lock.Contender) bool {
			token, ok := holders[c.Path]
			return ok && token == c.Token
		},
	})
	if err != nil && !errors.Is(err, lock.ErrKept) {
		return "", err
	}
	if len(list) == 0 {
		return path + ": that holder does not hold it any more", nil
	}
	parts := make([]string, len(list))
	for i, r := range list {
		parts[i] = owner(r.Holder) + " " + became(r.Ending)
	}
	return path + ": " + strings.Join(parts, "; "), nil
}
