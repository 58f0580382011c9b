package lock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// contenders are the markers of all who stand in a mutex's line. Kazoo's are counted so that we respect its locks; that kazoo respects
// ours needs its extra_lock_patterns.
var contenders = []line.Marker{line.CuratorLock, line.KazooLock}

func anyone(line.Seat) bool { return true }

// checkNew checks what every lock is made of.
func checkNew(client *zk.Client, path string, cfg Config) (Config, error) {
	if client == nil {
		return cfg, errors.New("lock: no client given; open one with zk.Open")
	}
	if err := ValidatePath(path); err != nil {
		return cfg, err
	}
	return cfg.withDefaults()
}

// ValidatePath returns an error unless path can be that of a lock: it is a node's, and not the server's own.
func ValidatePath(path string) error {
	if err := zk.ValidatePath(path); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if path == "/" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return fmt.Errorf("lock: %s belongs to the server: name a path of the lock's own, such as /locks/report", path)
	}
	return nil
}

// contenderLine is a line in which we stand with nodes of the given name.
func contenderLine(dir string, cfg Config, name string, markers []line.Marker, blocks func(line.Seat) bool) line.Line {
	owner := thisProcess(cfg.Label)
	return line.Line{
		Dir:     dir,
		Prefix:  func(guid string) string { return "_c_" + guid + "-" + name },
		Markers: markers,
		Blocks:  blocks,
		Data: func() []byte {
			o := owner
			o.Since = time.Now()
			return o.encode()
		},
		ACL: cfg.ACL,
	}
}

// holdOn makes a hold of nodes that serve nobody else, unless getting them has failed with err.
func (c *Config) holdOn(client *zk.Client, path string, ground line.Ground, err error) (*Hold, error) {
	t, err := c.tenure(ground, err)
	if err != nil {
		return nil, failedAt(client, path, err)
	}
	return t.hold((*tenure).leave), nil
}

// failedAt says of which lock err is, and, when waiting was cut short without a server in sight, why there was none.
func failedAt(client *zk.Client, path string, err error) error {
	if errors.Is(err, ErrHeld) {
		return err
	}
	return fmt.Errorf("lock: %s: %w", path, line.Explain(client, err))
}
