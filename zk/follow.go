package zk

// The ensemble's own list of its servers, which a client may follow.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// FollowConfig keeps the client's servers up to date with the ensemble's configuration, which servers change when
// members join or leave (/zookeeper/config, see Session.Reconfig): as by SetServers, now and after every change. It
// returns when ctx or the client ends. If a server refuses to tell its configuration, FollowConfig asks again after a
// growing pause, with a warning to Config.Logger.
//
// A configuration is ignored, with a warning to Config.Logger, unless it names the address for clients of each of its
// servers: otherwise the client would lose those that it knows, because servers that were configured without dynamic
// reconfiguration list members without addresses. So is one that is older than the last one followed under the same
// session, which a server that was removed may show. If Config.TLS is set, the addresses are those for TLS, and a
// configuration without them is ignored.
func (c *Client) FollowConfig(ctx context.Context) error {
	for ctx.Err() == nil {
		s, err := c.Session(ctx)
		if err != nil {
			return err
		}
		c.followUnder(ctx, s)
	}
	return contextError(ctx)
}

// followUnder follows the configuration until ctx or the session ends. The first one is no older than those that were
// followed under the session before, because it is read behind a sync: unless the ensemble was rebuilt since.
func (c *Client) followUnder(ctx context.Context, s *Session) {
	newest, tries := int64(-1), 0
	for ctx.Err() == nil && s.Err() == nil {
		err := s.Sync(ctx, "/")
		if err == nil {
			var data []byte
			var w *Watch
			if data, _, w, err = s.GetW(ctx, configPath); err == nil {
				newest, tries = c.follow(string(data), newest), 0
				_, err = w.Next(ctx)
				w.Close()
			}
		}
		if err == nil || s.Err() != nil || ctx.Err() != nil || brokenOff(err) {
			continue
		}
		if tries == 0 {
			c.log.Warn("cannot follow the configuration of the ensemble; retrying", "err", err)
		}
		s.pause(ctx, tries)
		tries++
	}
}

// follow uses a configuration, unless it is unusable or older than the newest so far. It returns the newest version.
func (c *Client) follow(text string, newest int64) int64 {
	list, version, err := parseConfig(text, c.cfg.TLS != nil)
	if err == nil && version < newest {
		err = fmt.Errorf("version %x is older than %x", version, newest)
	}
	if err != nil {
		c.log.Warn("ignored a configuration of the ensemble", "err", err)
		return newest
	}
	c.setServers(list)
	return version
}

// parseConfig returns the servers of an ensemble's configuration and its version, which is 0 if it has none. Each
// server is a line
//
//	server.ID=HOST:PORT:PORT[|HOST:PORT:PORT…][:ROLE][;[HOST:]CLIENTPORT[;[HOST:]SECUREPORT]]
//
// Other lines are ignored. It returns an error if a server has no address for clients.
func parseConfig(text string, secure bool) (list []server, version int64, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "version" {
			if v, err := strconv.ParseInt(value, 16, 64); err == nil {
				version = v
			}
		}
		id, ok := strings.CutPrefix(key, "server.")
		if _, err := strconv.ParseInt(id, 10, 64); !ok || err != nil {
			continue
		}
		s, err := clientAddress(value, secure)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w: %q", key, err, value)
		}
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, 0, errors.New("it names no server")
	}
	return list, version, nil
}

// clientAddress returns the address for clients from a server's line. An unspecified address means all those of the
// server, and so its first address for the other servers is used.
func clientAddress(value string, secure bool) (server, error) {
	parts := strings.Split(value, ";")
	at := 1
	if secure {
		at = 2
	}
	if len(parts) <= at || strings.TrimSpace(parts[at]) == "" {
		return server{}, errors.New("no address for clients of this kind")
	}
	host, port := "", strings.TrimSpace(parts[at])
	if i := strings.LastIndexByte(port, ':'); i >= 0 {
		host, port = unbracket(port[:i]), port[i+1:]
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		own, _, _ := strings.Cut(strings.TrimSpace(parts[0]), "|")
		if i := strings.IndexByte(own, ']'); i >= 0 {
			own = own[:i+1]
		} else {
			own, _, _ = strings.Cut(own, ":")
		}
		host = unbracket(own)
	}
	switch {
	case host == "":
		return server{}, errors.New("no host")
	case strings.ContainsAny(host, ",/!"): // they end an entry of Config.Servers
		return server{}, errors.New("a host with a comma, a slash or an exclamation mark")
	}
	return parseServer(net.JoinHostPort(host, port), false)
}

func unbracket(host string) string {
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
