package zoocfg

// The keys of zoo.cfg about the members of an ensemble.

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
)

// members reads the keys that members of an ensemble have. One member alone is a standalone server, as it is for
// ZooKeeper: its line may tell the address for clients, which members returns. More cause ErrEnsemble.
func (z *file) members() (clients string) {
	var servers []string
	for _, key := range slices.Sorted(maps.Keys(z.values)) {
		kind, id, numbered := strings.Cut(key, ".")
		p := z.values[key]
		switch {
		case kind == "server" && numbered:
			if _, err := strconv.ParseUint(id, 10, 63); err != nil {
				z.fail(p, "%s must be server. and a number", key)
				delete(z.values, key)
				continue
			}
			servers = append(servers, key)
		case numbered && (kind == "group" || kind == "weight"), key == "dynamicConfigFile",
			key == "peerType" && !strings.EqualFold(p.Value, participant):
			z.refuseEnsemble(key)
		case key == "peerType":
			delete(z.values, key)
		}
	}
	if len(servers) > 1 {
		z.refuseEnsemble(servers[0])
	}
	for _, key := range servers {
		p := z.values[key]
		delete(z.values, key)
		if len(servers) > 1 {
			continue
		}
		m, err := parseMember(p.Value)
		switch {
		case err != nil:
			z.fail(p, "%s=%s: %w", key, p.Value, err)
		case m.observer:
			z.values[key] = p
			z.refuseEnsemble(key)
		default:
			clients = m.clients
		}
	}
	return clients
}

// refuseEnsemble reports ErrEnsemble for a key, unless it was reported already.
func (z *file) refuseEnsemble(key string) {
	if !z.ensemble {
		z.ensemble = true
		z.errs = append(z.errs, fmt.Errorf("%w (line %d: %s)", ErrEnsemble, z.values[key].Line, key))
	}
	delete(z.values, key)
}

// participant is what members are that vote.
const participant = "participant"

// member is what this server needs to know of a line about a member.
type member struct {
	clients  string // host:port for clients, empty if the line does not say
	observer bool
}

// parseMember reads the value of server.N: host:port:port[:role][|host:port:port[:role]...][;[host:]port].
func parseMember(text string) (m member, err error) {
	peers, clients, told := strings.Cut(text, ";")
	for peer := range strings.SplitSeq(peers, "|") {
		parts, err := hostAndPorts(peer)
		if err != nil {
			return m, err
		}
		if len(parts) == 4 {
			switch role := strings.ToLower(parts[3]); role {
			case participant:
			case "observer":
				m.observer = true
			default:
				return m, fmt.Errorf("the role must be participant or observer: %s", parts[3])
			}
			parts = parts[:3]
		}
		if len(parts) != 3 || !isPort(parts[1]) || !isPort(parts[2]) {
			return m, fmt.Errorf("want host:port:port, such as zk1:2888:3888: %s", peer)
		}
	}
	if !told {
		return m, nil
	}
	parts, err := hostAndPorts(clients)
	if err != nil {
		return m, err
	}
	host, port := "", parts[len(parts)-1]
	if len(parts) == 2 {
		host = parts[0]
	}
	if len(parts) > 2 || !isPort(port) || len(parts) == 2 && (host == "" || host == "unix") {
		return m, fmt.Errorf("want a port or host:port for clients behind the semicolon: %s", clients)
	}
	m.clients = net.JoinHostPort(host, port)
	return m, nil
}

// hostAndPorts splits at colons. A host with colons is in brackets.
func hostAndPorts(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") {
		return strings.Split(text, ":"), nil
	}
	host, rest, ok := strings.Cut(text[1:], "]")
	ports, colon := strings.CutPrefix(rest, ":")
	if !ok || !colon || host == "" {
		return nil, fmt.Errorf("want ]: behind the address in brackets: %s", text)
	}
	return append([]string{host}, strings.Split(ports, ":")...), nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
