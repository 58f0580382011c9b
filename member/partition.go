package member

// Partitioner: items shared among the members of a group.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of a Partitioner. All are found with errors.Is.
var (
	// ErrMoved is the cause of a share's context when the item is to go to another member, or was taken out of the set.
	ErrMoved = errors.New("the item moves to another member")
	// ErrDeleted is the cause of a share's context after another client, such as an operator's, deleted its lock node.
	ErrDeleted = errors.New("the node of the item's lock was deleted by another client")
	// ErrRuns is what Run returns when another Run of the same Partitioner has not returned.
	ErrRuns = errors.New("the partitioner runs already; make another one")
)

// Split says which member gets which items, and which other programs share them.
type Split int

// The splits. All members of a path use the same one. If they do not, items may have no owner, but never two.
const (
	// Even moves few items when members come and go. Shares differ from each other by one item at most while they are
	// below a hundred items, and otherwise from their mean by a tenth of it at most.
	Even Split = iota
	// SetPartitioner is the split, and the layout, of kazoo's SetPartitioner with its default function: of the sorted
	// items, a member gets every nth. Most items move with each change. Nodes of locks are kazoo's, and their parents
	// stay.
	SetPartitioner
)

// String returns the split's name.
func (s Split) String() string {
	switch s {
	case Even:
		return "Even"
	case SetPartitioner:
		return "SetPartitioner"
	}
	return fmt.Sprintf("Split(%d)", int(s))
}

// PartitionerConfig says how a Partitioner behaves. The zero PartitionerConfig is ready to use.
type PartitionerConfig struct {
	Split Split
	// Settle is how long members and items must not change before items move, so that several changes in a row move
	// them once. It is a second if zero. Changes that go on delay the move by ten times that at most.
	Settle time.Duration
	ACL    []zk.ACL // of the nodes and of parents that are created for them; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool
	Hooks  PartitionerHooks
	_      struct{}
}

// PartitionerHooks are called by Run, on the goroutine of the item. Nil fields cost nothing.
type PartitionerHooks struct {
	Gained  func(s *Share)                        // before the function is called
	Lost    func(item string, cause, fnErr error) // after it has returned: why the share ended, and its error
	Refused func(item string, err error)          // the item's lock is refused; without an item, the list of members
}

// Partitioner shares a set of items among all members at a path, so that an item has one owner at most. It may be used
// by any number of goroutines.
type Partitioner struct {
	client *zk.Client
	path   string
	id     string
	cfg    PartitionerConfig
	group  *Group

	mu      sync.Mutex // guards the fields below; never held while anything is waited for
	items   []string   // sorted, each once
	changed chan struct{}
	runs    bool
	owned   map[string]*Share
}

// NewPartitioner returns a member, id, of the partitioner at path, which no other recipe may use. Items are the names
// of the items; all members should be given the same. Ids should differ. Members with the same id share items, too,
// but not beside kazoo's: that gives them the same ones. NewPartitioner does not contact the server. It returns an
// error if the path, the id, an item or the configuration is invalid.
func NewPartitioner(
	client *zk.Client, path, id string, items []string, cfg PartitionerConfig,
) (*Partitioner, error) {
	if err := attempt.Args("member", client, path, cfg.ACL); err != nil {
		return nil, err
	}
	if cfg.Split < Even || cfg.Split > SetPartitioner {
		return nil, attempt.Bad("member: unknown split %v; use Even or SetPartitioner", cfg.Split)
	}
	if cfg.Settle < 0 {
		return nil, attempt.Bad("member: Settle must not be negative: %v", cfg.Settle)
	}
	cfg.Settle = cmp.Or(cfg.Settle, time.Second)
	group, err := NewGroup(client, path+"/party", GroupConfig{Layout: ShallowParty, ACL: cfg.ACL, AnyACL: cfg.AnyACL})
	if err != nil {
		return nil, err
	}
	if _, _, err := group.name(id, nil); err != nil {
		return nil, err
	}
	p := &Partitioner{
		client: client, path: path, id: id, cfg: cfg, group: group,
		changed: make(chan struct{}), owned: make(map[string]*Share),
	}
	if err := p.SetItems(items); err != nil {
		return nil, err
	}
	return p, nil
}

// Path returns the partitioner's path.
func (p *Partitioner) Path() string { return p.path }

// ID returns the member's id.
func (p *Partitioner) ID() string { return p.id }

// SetItems replaces the set of items, also while Run runs. Items that stay go on undisturbed if they stay with this
// member. Members that are told at different times may leave an item without an owner meanwhile; none has two. It
// returns an error, and changes nothing, if an item cannot be the name of a node.
func (p *Partitioner) SetItems(items []string) error {
	sorted := slices.Sorted(slices.Values(items))
	sorted = slices.Compact(sorted)
	for _, item := range sorted {
		if strings.Contains(item, "/") || zk.ValidatePath(p.locks()+"/"+item) != nil {
			return attempt.Bad(
				"member: item %.40q cannot be the name of a node; use letters, digits, dots and dashes", item)
		}
		l := p.line(item)
		if err := line.CheckSize(&l.Line); err != nil {
			return fmt.Errorf("member: item %.40q: %w", item, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = sorted
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// Items returns the set of items, sorted.
func (p *Partitioner) Items() []string {
	items, _ := p.latest()
	return slices.Clone(items)
}

// latest returns the items, and a channel that is closed when they are replaced.
func (p *Partitioner) latest() ([]string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.items, p.changed
}

// Owned returns the items that this member owns, sorted.
func (p *Partitioner) Owned() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	owned := make([]string, 0, len(p.owned))
	for item, s := range p.owned {
		if s.ownership.Err() == nil {
			owned = append(owned, item)
		}
	}
	slices.Sort(owned)
	return owned
}

// locks is the path above the locks.
func (p *Partitioner) locks() string { return p.path + "/locks" }

// An itemLine is the line in which the members stand for one item.
type itemLine struct{ line.Line }

func (p *Partitioner) line(item string) *itemLine {
	marker := line.CuratorLock
	if p.cfg.Split == SetPartitioner {
		marker = line.KazooLock
	}
	return &itemLine{line.Line{
		Dir:     p.locks() + "/" + item,
		Prefix:  func(guid string) string { return "_c_" + guid + "-" + string(marker) },
		Markers: []line.Marker{line.CuratorLock, line.KazooLock}, // whatever the split of the others
		Blocks:  func(line.Contender) bool { return true },
		Data:    func() []byte { return []byte(p.id) },
		ACL:     p.cfg.ACL,
		AnyACL:  p.cfg.AnyACL,
		Lasting: p.cfg.Split == SetPartitioner,
	}}
}

// start marks the partitioner as running.
func (p *Partitioner) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs {
		return p.failed(ErrRuns)
	}
	p.runs = true
	return nil
}

func (p *Partitioner) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = false
}

// failed adds the path to err, and, if there was no server to ask, the reason.
func (p *Partitioner) failed(err error) error {
	return fmt.Errorf("member: %s: %w", p.path, attempt.Explain(p.client, err))
}

// A Share is an item that this member owns. It belongs to one session and never outlives it. Its methods may be called
// from any goroutine.
type Share struct {
	item      string
	ownership *line.Ownership
	ctx       context.Context //nolint:containedctx // the share's own
}

var _ zk.Held = (*Share)(nil)

// Item returns the item's name.
func (s *Share) Item() string { return s.item }

// Context returns the share's context: the one that Run's function gets. It ends when the item must go or is lost,
// with the reason as its cause: ErrMoved; ctx's cause if Run ends; zk.ErrUncertain if no quorum of servers has
// confirmed the session lately, which is before any of them can let another member own the item; zk.ErrLost,
// zk.ErrExpired or zk.ErrClosed if the session ended; ErrDeleted.
func (s *Share) Context() context.Context { return s.ctx }

// Token returns the fencing token: larger than that of every earlier share of the item.
func (s *Share) Token() zk.Token { return zk.Token(s.ownership.FirstToken()) }

// Guard returns the operation to put first in a multi: the server refuses the whole multi with zk.NoNode once the
// member does not own the item any more.
func (s *Share) Guard() zk.Op { return zk.CheckOp(s.Path(), -1) }

// Guards returns the operations to put first in a multi so that the server refuses it unless the member owns the item.
func (s *Share) Guards() []zk.Op { return s.ownership.Guards() }

// Path returns the path of the node by which the member owns the item.
func (s *Share) Path() string { return s.ownership.Own().Path() }

// Session returns the share's session. Guarded writes go through it.
func (s *Share) Session() *zk.Session { return s.ownership.Session() }
