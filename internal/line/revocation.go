package line

// Asking a holder to give up what it holds.

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// Owner describes a contender to others: see lock.Owner.
type Owner struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
	Label   string `json:"label,omitempty"`

	// Set has all paths of a set's contender. Where they are longer than 1,024 bytes together, only the node at the
	// first path has all of them, and the others have the first.
	Set []string `json:"set,omitempty"`

	Since time.Time `json:"since"` // when it joined the line, by its own clock; the last field (lock.ownerData)
}

// ThisProcess returns the owner record of this process without a time.
func ThisProcess(label string) Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "?" // the record is for people; a host without a name must still be able to lock
	}
	return Owner{Host: host, PID: os.Getpid(), Program: filepath.Base(os.Args[0]), Label: label}
}

// Ask stops the ownership with a cause, because another client asks for what it owns, unless onRevoke is not nil and
// returns false. Key tells the request r from others; empty if nothing does. The nodes stay until the ownership is
// released, so that no other contender comes in while the holder finishes. OnRevoke runs on a goroutine of its own, and
// may take its time: the nodes are still watched meanwhile. It answers for the hold that there is, and its context ends
// with that: no further hold is served (see Spent).
func Ask[R any](o *Ownership, r R, key string, cause error, onRevoke func(ctx context.Context, r R) bool) {
	o.mu.Lock()
	// One request comes again if a node is read twice, or another node has taken its place. Curator's have no content.
	again := o.asked != nil && key == *o.asked && key != ""
	o.asked = &key
	o.mu.Unlock()
	if again {
		return
	}
	if onRevoke == nil {
		o.Stop(cause)
		return
	}
	go func() {
		ctx, cancel := o.NewContext()
		defer cancel(nil)
		if ctx.Err() == nil && onRevoke(ctx, r) {
			o.stop(cause)
		}
	}()
}
