package lock

// Records of revocations.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxRecords is how many revocations are remembered of a path: the latest.
const maxRecords = 32

// What bounds a record, and all of them together, so that they fit into a node.
const (
	maxRecordHolders = 256
	maxRecordBytes   = 256 << 10
)

// Record is the record of a revocation.
type Record struct {
	ID      string         `json:"id"` // random
	Request Revocation     `json:"request"`
	Force   bool           `json:"force"`   // whether holders that kept the lock were to be forced
	Over    bool           `json:"over"`    // false while it is under way, and for good if its process died
	Holders []RecordHolder `json:"holders"` // the first 256 of them; fewer if others' data in them is large

	acl []zk.ACL // of the node, if this record is its first
}

// RecordHolder is a holder that was asked, and what became of it.
type RecordHolder struct {
	Node    string    `json:"node"`
	Session int64     `json:"session"`
	Since   time.Time `json:"since"`
	Token   Token     `json:"token"`
	Owner   *Owner    `json:"owner,omitempty"` // nil if it was not one of ours
	Data    string    `json:"data,omitempty"`  // of another's node, before it was asked; the beginning
	Ending  Ending    `json:"ending"`          // EndingKept until it is known
}

// RecordsPath returns the path of the node with the records of revocations of the lock at path: a sibling, outside
// the line.
func RecordsPath(path string) string { return path + "-__revoked__" }

// Revocations returns the records of the last 32 revocations of the lock at path that had RevokeOptions.Record set, the
// latest last.
func Revocations(ctx context.Context, client *zk.Client, path string) ([]Record, error) {
	if err := attempt.ReadArgs("lock", client, path); err != nil {
		return nil, err
	}
	list, err := attempt.Run(ctx, client, func(sess *zk.Session) ([]Record, error) {
		if err := sess.Sync(ctx, RecordsPath(path)); err != nil {
			return nil, err
		}
		list, _, err := readRecords(ctx, sess, path)
		return list, err
	})
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock: revocations of %s: %w", path, err)
	}
	return list, nil
}

func readRecords(ctx context.Context, sess *zk.Session, path string) ([]Record, zk.Stat, error) {
	data, stat, err := sess.Get(ctx, RecordsPath(path))
	if err != nil {
		return nil, stat, err
	}
	var list []Record
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, stat, fmt.Errorf("%s is not a record of revocations; delete it: %w", RecordsPath(path), err)
	}
	return list, stat, nil
}

func newRecord(request Revocation, opts RevokeOptions) *Record {
	return &Record{ID: attempt.NewGUID(), Request: request, Force: opts.Force, acl: opts.ACL}
}

// keep writes the record, in place of its former state if that is there. It ends with ctx.
func (e *Record) keep(ctx context.Context, client *zk.Client, path string, list []Revoked) error {
	e.Over = e.Holders != nil
	e.Holders = nil
	for _, r := range list[:min(len(list), maxRecordHolders)] {
		h := RecordHolder{
			Node: r.Holder.Path, Session: r.Holder.Session, Since: r.Holder.Since,
			Token: r.Holder.Token, Ending: r.Ending,
		}
		if r.Holder.Known {
			h.Owner = bounded(r.Holder.Owner)
		} else {
			h.Data = text(string(r.Holder.Data), maxText)
		}
		e.Holders = append(e.Holders, h)
	}
	_, err := attempt.Run(ctx, client, func(sess *zk.Session) (struct{}, error) {
		for {
			err := e.write(ctx, sess, path)
			if !errors.Is(err, zk.BadVersion) && !errors.Is(err, zk.NodeExists) { // others write as well
				return struct{}{}, err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("record in %s: %w", RecordsPath(path), err)
	}
	return nil
}

// maxText bounds, in bytes, what a record keeps of each text that others have written.
const maxText = 256

// text is the beginning of what others have written.
func text(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "\uFFFD") }

// bounded is an owner as a record keeps it: others may have written anything there.
func bounded(o Owner) *Owner {
	o.Host, o.Program, o.Label = text(o.Host, maxText), text(o.Program, maxText), text(o.Label, maxLabel)
	size := 0
	for i, path := range o.Set {
		if size += len(path); size > maxSet {
			o.Set = o.Set[:i]
			break
		}
	}
	return &o
}

// remember says whose node it was before an earlier revocation wrote over it.
func (h *RecordHolder) remember(earlier []Record) {
	if h.Data != line.RevokeToken {
		return
	}
	for _, record := range earlier {
		for _, other := range record.Holders {
			if other.Node == h.Node && other.Token == h.Token && other.Data != "" && other.Data != line.RevokeToken {
				h.Data = other.Data
			}
		}
	}
}

// write writes the record once. Doing so twice does no harm: it is found by its ID.
func (e *Record) write(ctx context.Context, sess *zk.Session, path string) error {
	list, stat, err := readRecords(ctx, sess, path)
	absent := errors.Is(err, zk.NoNode)
	if err != nil && !absent {
		return err
	}
	for i := range e.Holders {
		e.Holders[i].remember(list)
	}
	if i := slices.IndexFunc(list, func(o Record) bool { return o.ID == e.ID }); i >= 0 {
		list[i] = *e
	} else {
		list = append(list, *e)
	}
	list = list[max(0, len(list)-maxRecords):]
	data, err := json.Marshal(list)
	for err == nil && len(data) > maxRecordBytes && (len(list) > 1 || len(list[0].Holders) > 0) {
		if len(list) > 1 {
			list = list[1:]
		} else {
			list[0].Holders = list[0].Holders[:len(list[0].Holders)/2]
		}
		data, err = json.Marshal(list)
	}
	if err != nil {
		return err
	}
	if absent {
		_, err = sess.CreateNode(ctx, zk.Node{Path: RecordsPath(path), Data: data, ACL: e.acl})
	} else {
		_, err = sess.Set(ctx, RecordsPath(path), data, stat.Version)
	}
	return err
}
