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

// A server is where to dial: a network and an address. The host is the name to verify in TLS, "" for unix sockets.
type server struct {
	network, address, host string
}

func (s server) String() string {
	if s.network == "unix" {
		return "unix:" + s.address
	}
	return s.address
}

// parseServers takes a connect string apart. It is a comma-separated list of servers with an optional chroot at the end:
//
//	host, host:port, 10.0.0.1:2181, [::1]:2181, unix:/path/to.sock
//
// The chroot begins with the first slash after a host. After a unix socket, whose path has slashes of its own, it
// begins after an exclamation mark: "unix:/run/zk.sock!/app"; hosts may use that form as well, and must if the chroot
// has a comma. Without the mark it would most likely be a chroot in the middle of the list, and all servers behind it
// would be lost.
func parseServers(list string) ([]server, chroot, error) {
	var servers []server
	rest := strings.TrimSpace(list)
	if rest == "" {
		return nil, "", errors.New("zk: no servers given: want host:port[,host:port…][/chroot] or unix:/path")
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
				const hint = "it stands behind the last server (or after an exclamation mark: host!/a,b)"
				err = fmt.Errorf("the chroot %s has a comma: %s", root, hint)
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
			return server{}, errors.New("unix: needs the path of a socket")
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
		return server{}, fmt.Errorf("%q has no host", entry)
	}
	if strings.ContainsAny(host, "[]@ \t\n") {
		return server{}, fmt.Errorf("%q is not a host name", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return server{}, fmt.Errorf("%q is not a port", port)
	}
	return server{network: "tcp", address: net.JoinHostPort(host, port), host: host}, nil
}
