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
// comma, another sign that people separate servers with, or a port at its end: without it the chroot was most likely
// meant for the middle of the list, and all servers behind it would be ignored.
func parseServers(list string) ([]server, chroot, error) {
	if strings.TrimSpace(list) == "" {
		return nil, "", errors.New("zk: servers must not be empty: want host:port[,host:port…][/chroot] or unix:/path")
	}
	servers, root, err := splitServers(strings.TrimSpace(list))
	if err == nil {
		return servers, root, nil
	}
	if hint, ok := instead(list, len(servers) > 0); ok {
		return nil, "", fmt.Errorf("zk: servers %q: %s", withoutPassword(list), hint)
	}
	return nil, "", fmt.Errorf("zk: servers %q: %w", withoutPassword(list), err)
}

// splitServers does not look for what to write instead. If only the chroot is wrong, it returns the servers, too.
func splitServers(rest string) ([]server, chroot, error) {
	var servers []server
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
			return nil, "", err
		}
		servers = append(servers, s)
		switch stop {
		case 0:
			return servers, "", nil
		case ',':
			rest = strings.TrimLeft(rest[1:], " ")
		default:
			root, err := parseChroot(strings.TrimPrefix(rest, "!"))
			if found := unlikely(string(root)); err == nil && stop == '/' && found != "" {
				err = fmt.Errorf("chroot must not have %q: put it after the last server and its port, or write %s!%s",
					found, servers[len(servers)-1], root)
			}
			return servers, root, err
		}
	}
}

// unlikely returns what stands in a chroot by mistake: a separator of servers, or a port at the end. It is empty if
// there is nothing such.
func unlikely(root string) string {
	if i := strings.IndexFunc(root, isSeparator); i >= 0 {
		return root[i : i+1]
	}
	if i := strings.LastIndexByte(root, ':'); i >= 0 && validPort(root[i+1:]) {
		return root[i:]
	}
	return ""
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
			return server{}, fmt.Errorf("%w (want host:port, or [::1]:2181 for an IPv6 address)", err)
		}
	}
	if host == "" {
		return server{}, fmt.Errorf("host must not be empty: %q", entry)
	}
	if strings.ContainsAny(host, "[]@; \t\r\n\"'") {
		return server{}, fmt.Errorf("invalid host name: %q", host)
	}
	if !validPort(port) {
		return server{}, fmt.Errorf("invalid port: %q", port)
	}
	return server{network: "tcp", address: net.JoinHostPort(host, port), host: host}, nil
}

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}
