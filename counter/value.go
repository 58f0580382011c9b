package counter

// Value.

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Value is bytes that many processes read, change and watch, in one node: that of Curator's SharedValue. Its methods
// may be called from several goroutines at once.
type Value struct {
	reg  *register
	most int // bytes
}

// Versioned is what a Value was at some time.
type Versioned struct {
	Data   []byte
	Exists bool // whether there was a node; all else is zero if there was none

	Mzxid   int64 // the transaction that has written the data: it is larger for later data, whatever else happens
	Czxid   int64 // the transaction that has created the node
	Version int32 // counts the writes to the node since then
}

// NewValue returns the value at path. It does not contact the server. It returns an error if the path or the
// configuration is invalid.
func NewValue(client *zk.Client, path string, config ValueConfig) (*Value, error) {
	reg, err := newRegister(client, path, config.ACL, config.AnyACL)
	if err != nil {
		return nil, err
	}
	most := attempt.MaxData(config.MaxPacket, path, config.ACL)
	if most <= 0 {
		const text = "counter: %w: MaxPacket is too small: %d bytes"
		return nil, fmt.Errorf(text, zk.BadArguments, config.MaxPacket)
	}
	return &Value{reg: reg, most: most}, nil
}

// Close is Counter.Close.
func (v *Value) Close(ctx context.Context) error { return v.reg.close(ctx) }

// Path returns the path of the value's node.
func (v *Value) Path() string { return v.reg.path }

// Get returns the value. A node that is missing is not an error. What Get returns is as new as what Counter.Get does.
func (v *Value) Get(ctx context.Context) (Versioned, error) {
	now, err := v.get(ctx)
	return versioned(now), v.reg.failed("get", err)
}

func (v *Value) get(ctx context.Context) (content, error) {
	return attempt.Run(ctx, v.reg.client, func(sess *zk.Session) (content, error) {
		return v.reg.readSynced(ctx, sess)
	})
}

// Set sets the value, whatever it is, and creates the node if it is missing. It is done once, whatever becomes of the
// connection: it never replaces a value that was set after it. If ctx ends before the value was sent, it is not set. If
// it ends later, Set waits for the outcome, at most until the session ends; the error is then ErrUnresolved. It returns
// ErrTooLarge for data that servers do not accept.
func (v *Value) Set(ctx context.Context, data []byte) error {
	err := v.fits(data)
	exists := true
	for err == nil {
		_, err = v.reg.write(ctx, change{create: !exists, data: data, version: anyVersion})
		if !errors.Is(err, errConflict) {
			break
		}
		exists, err = !exists, nil
	}
	return v.reg.failed("set", err)
}

// Seed sets the value if there is no node yet, and returns the value that is there then. An existing node is never
// changed, even if it is empty or was never set (CURATOR-329). Its errors are those of Set.
func (v *Value) Seed(ctx context.Context, data []byte) (Versioned, error) {
	now, _, err := v.CompareAndSet(ctx, Versioned{}, data)
	return now, err
}

// CompareAndSet sets the value if it is still old, as Get, Watch or another CompareAndSet returned it; the zero
// Versioned stands for a missing node. It returns the value after the call, and whether it was set. A value that was
// changed and changed back is not still old, and neither is one in a node that was deleted and created again. Its
// errors are those of Set, and ErrVersions and ErrRecreated.
func (v *Value) CompareAndSet(ctx context.Context, old Versioned, data []byte) (Versioned, bool, error) {
	if err := v.fits(data); err != nil {
		return Versioned{}, false, v.reg.failed("compare and set", err)
	}
	for {
		now, err := v.get(ctx)
		if err != nil {
			return Versioned{}, false, v.reg.failed("compare and set", err)
		}
		// The version alone does not tell: it starts again from 0 in a new node.
		if now.exists != old.Exists || now.stat.Mzxid != old.Mzxid {
			return versioned(now), false, nil
		}
		change, err := now.change(data)
		if err == nil {
			var stat zk.Stat
			stat, err = v.reg.write(ctx, change)
			if errors.Is(err, errConflict) {
				continue // and return what is there now
			}
			if err == nil {
				now, err = now.after(data, stat)
			}
		}
		if err != nil {
			return Versioned{}, false, v.reg.failed("compare and set", err)
		}
		now.data = bytes.Clone(data) // the caller may use its own for something else
		return versioned(now), true, nil
	}
}

func (v *Value) fits(data []byte) error {
	if len(data) > v.most {
		const text = "%w: %d bytes, and at most %d fit (see ValueConfig.MaxPacket)"
		return fmt.Errorf(text, ErrTooLarge, len(data), v.most)
	}
	return nil
}

func versioned(c content) Versioned {
	if !c.exists {
		return Versioned{}
	}
	return Versioned{Data: c.data, Exists: true, Mzxid: c.stat.Mzxid, Czxid: c.stat.Czxid, Version: c.stat.Version}
}
