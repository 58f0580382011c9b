package discovery

// Registries: configuration, and what is registered at the moment.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of registries. They are found with errors.Is.
var (
	// ErrClosed is returned by Register after the registry's Close, and by the methods of a registration or a provider
	// after they have ended. What only reads a registry goes on after its Close.
	ErrClosed = errors.New("the registry is closed")
	// ErrRegistered is the answer to a second registration of one id of a service by one client, before the first is
	// unregistered.
	ErrRegistered = errors.New("this client has registered the id already")
)

// Config says how a registry behaves. The zero Config is ready to use.
type Config struct {
	ACL []zk.ACL // of instances' nodes and of parents that are created for them; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool
	Logger *slog.Logger // is told of nodes that are not instances; silent if nil
	_      struct{}
}

// Registry is the services below a base path: BASE/SERVICE/ID is an instance. It may be used by any number of
// goroutines, and several registries of one path do not disturb each other.
type Registry struct {
	client *zk.Client
	base   string
	cfg    Config
	log    *slog.Logger

	mu            sync.Mutex
	closed        bool
	registrations map[*Registration]struct{}
}

// NewRegistry returns the registry at base. It does not contact the server: the path is created with the first
// instance. It returns an error if the path is invalid.
func NewRegistry(client *zk.Client, base string, cfg Config) (*Registry, error) {
	checked := base
	if base == "/" {
		base, checked = "", "/service"
	}
	if err := attempt.Args("discovery", client, checked, cfg.ACL); err != nil {
		return nil, err
	}
	r := &Registry{client: client, base: base, cfg: cfg, log: cfg.Logger, registrations: map[*Registration]struct{}{}}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	return r, nil
}

// Path returns the path of a service, which has its instances as children.
func (r *Registry) Path(service string) string { return r.base + "/" + service }

// Services returns the names of the services that are or were registered, in no particular order. It sees what was
// committed before the call. A service without instances may be among them until the server collects its node.
func (r *Registry) Services(ctx context.Context) ([]string, error) {
	base := r.base
	if base == "" {
		base = "/"
	}
	names, err := attempt.Run(ctx, r.client, func(sess *zk.Session) ([]string, error) {
		return r.list(ctx, sess, base)
	})
	if err != nil {
		return nil, fmt.Errorf("discovery: services: %w", attempt.Explain(r.client, err))
	}
	return names, nil
}

// Instances returns the instances of a service, disabled ones included, ordered by the names of their nodes. It sees
// what was committed before the call. A node that is not an instance, or may not be read, is left out, and the
// logger is told.
func (r *Registry) Instances(ctx context.Context, service string) ([]Instance, error) {
	if err := checkName("service", service); err != nil {
		return nil, err
	}
	all, err := attempt.Run(ctx, r.client, func(sess *zk.Session) ([]Instance, error) {
		return r.read(ctx, sess, service)
	})
	if err != nil {
		return nil, fmt.Errorf("discovery: instances of %s: %w", service, attempt.Explain(r.client, err))
	}
	return all, nil
}

// Instance returns the instance of a service that has the id, and whether there is one.
func (r *Registry) Instance(ctx context.Context, service, id string) (Instance, bool, error) {
	all, err := r.Instances(ctx, service)
	if err != nil {
		return Instance{}, false, err
	}
	for _, i := range all {
		if i.ID == id {
			return i, true, nil
		}
	}
	return Instance{}, false, nil
}

// list returns the children of a node as they are now; none if there is no such node.
func (r *Registry) list(ctx context.Context, sess *zk.Session, path string) ([]string, error) {
	if err := sess.Sync(ctx, path); err != nil {
		return nil, err
	}
	names, _, err := sess.Children(ctx, path)
	if err != nil && !errors.Is(err, zk.NoNode) {
		return nil, err
	}
	return names, attempt.Dirs{ACL: r.cfg.ACL, AnyACL: r.cfg.AnyACL, Above: true}.Check(ctx, sess, path)
}

// read returns the instances of a service as they are now.
func (r *Registry) read(ctx context.Context, sess *zk.Session, service string) ([]Instance, error) {
	path := r.Path(service)
	names, err := r.list(ctx, sess, path)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = path + "/" + name
	}
	var all []Instance
	for node, reply := range attempt.Each(sess, names, (*zk.Batch).Get) {
		data, err := reply.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			continue // unregistered since the list was read
		}
		if errors.Is(err, zk.NoAuth) {
			r.log.Warn("node may not be read; it is left out", "path", node)
			continue
		}
		if err != nil {
			return nil, err
		}
		if instance, ok := r.instance(node, data.Data); ok {
			all = append(all, instance)
		}
	}
	return all, nil
}

// instance returns the instance in a node, and tells the logger of a node without one.
func (r *Registry) instance(path string, data []byte) (Instance, bool) {
	i, err := decode(data)
	if err != nil {
		r.log.Warn("node is not an instance of a service; it is left out", "path", path, "err", err)
		return Instance{}, false
	}
	return i, true
}

// decode returns the instance in a node. The error of a node that has none says what is wrong.
func decode(data []byte) (Instance, error) {
	var i Instance
	if len(data) == 0 {
		return i, errors.New("it has no data") // CURATOR-574: such a node made Curator's readers fail
	}
	if err := json.Unmarshal(data, &i); err != nil {
		return i, err
	}
	if i.Service == "" || i.ID == "" {
		return i, errors.New("it has no name or no id")
	}
	return i, nil
}
