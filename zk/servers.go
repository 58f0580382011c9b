package zk

// The syntax of a connect string.

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

const defaultPort = "2181"

// A server is a network and an address to dial. TLS verifies the host, which is empty for unix sockets.
type server struct {
	network, address, host string
}

func (s server) String() string {
	if s.network == "unix" {
		return "unix:" + s.address
	}
	return s.address
}

// parseServers parses a connect string: a comma-separated list of servers with an optional chroot at the end.
//
//	host, host:port, 10.0.0.1:2181, [::1]:2181, unix:/path/to.sock
//
// The chroot begins with the first slash after a host. An exclamation mark precedes it after a unix socket, whose path
// has slashes itself: "unix:/run/zk.sock!/app". The mark is allowed after hosts, too, and required if the chroot has a
// comma: without it the chroot was most likely meant for the middle of the list, and all servers behind it would be
// ignored.
func parseServers(list string) ([]server, chroot, error) {
	var servers []server
	rest := strings.TrimSpace(list)
	if rest == "" {
		return nil, "", errors.New("zk: servers must not be empty: want host:port[,host:port…][/chroot] or unix:/path")
	}
	for {
		isUnix := strings.HasPrefix(rest, "unix:")
		stops := ",/!"
		if isUnix {
			stops = ",!"
		}
		entry, stop := rest, byte(0)
		if i := strings.IndexAny(rest, stops); i >= 0 {
			entry, stop, rest = rest[:i], rest[i], rest[i:]
		}
		s, err := parseServer(strings.TrimSpace(entry), isUnix)
		if err != nil {
			return nil, "", fmt.Errorf("zk: servers %q: %w", list, err)
		}
		servers = append(servers, s)
		switch stop {
		case 0:
			return servers, "", nil
		case ',':
			rest = strings.TrimLeft(rest[1:], " ")
		default:
			root, err := parseChroot(strings.TrimPrefix(rest, "!"))
			if err == nil && stop == '/' && strings.Contains(string(root), ",") {
				const hint = "put the chroot after the last server, or write host!/a,b"
				err = fmt.Errorf("chroot must not have a comma: %s: %s", root, hint)
			}
			if err != nil {
				return nil, "", fmt.Errorf("zk: servers %q: %w", list, err)
			}
			return servers, root, nil
		}
	}
}

func parseChroot(path string) (chroot, error) {
	if err := ValidatePath(path); err != nil {
		return "", fmt.Errorf("chroot: %w", err)
	}
	if path == "/" {
		return "", nil
	}
	return chroot(path), nil
}

func parseServer(entry string, isUnix bool) (server, error) {
	if isUnix {
		path := strings.TrimPrefix(entry, "unix:")
		if path == "" {
			return server{}, errors.New("unix: must be followed by the path of a socket")
		}
		return server{network: "unix", address: path}, nil
	}
	host, port := entry, defaultPort
	switch {
	case entry == "":
		return server{}, errors.New("empty entry between commas")
	case strings.HasPrefix(entry, "[") && strings.HasSuffix(entry, "]"):
		host = entry[1 : len(entry)-1]
	case strings.Contains(entry, ":"):
		var err error
		if host, port, err = net.SplitHostPort(entry); err != nil {
			return server{}, fmt.Errorf("%w (an IPv6 address needs brackets: [::1]:2181)", err)
		}
	}
	if host == "" {
		return server{}, fmt.Errorf("host must not be empty: %q", entry)
	}
	if strings.ContainsAny(host, "[]@ \t\n") {
		return server{}, fmt.Errorf("invalid host name: %q", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return server{}, fmt.Errorf("invalid port: %q", port)
	}
	return server{network: "tcp", address: net.JoinHostPort(host, port), host: host}, nil
}
