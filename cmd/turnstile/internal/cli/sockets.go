package cli

// Sockets that the service manager has opened: sd_listen_fds(3).

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// firstPassed is the first descriptor of those that systemd passes.
const firstPassed = 3

// A passedSocket is one that the process was started with.
type passedSocket struct {
	net.Listener
	name string // FileDescriptorName= of the socket unit
}

// passedName returns the name of the passed socket that an address of --listen means.
func passedName(address string) (string, bool) { return strings.CutPrefix(address, "fd:") }

// passedSockets returns the sockets that were opened for this process. What others have got they are not for us, even
// if we have inherited the variables.
func passedSockets(vars map[string]string) ([]passedSocket, error) {
	if vars["LISTEN_PID"] != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(vars["LISTEN_FDS"])
	if err != nil || n < 0 {
		return nil, fmt.Errorf("LISTEN_FDS must be the number of sockets: %q", vars["LISTEN_FDS"])
	}
	names := slices.Repeat([]string{"unknown"}, n) // as sd_listen_fds_with_names calls them
	if given, ok := vars["LISTEN_FDNAMES"]; ok {
		if names = strings.Split(given, ":"); n > 0 && len(names) != n {
			return nil, fmt.Errorf("LISTEN_FDNAMES must have %d names: %q", n, given)
		}
	}
	for i := range n {
		closeOnExec(firstPassed + i)
	}
	var sockets []passedSocket
	for i := range n {
		l, err := passedListener(firstPassed + i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("socket %q of systemd: %w", names[i], err), closeAll(sockets))
		}
		sockets = append(sockets, passedSocket{l, names[i]})
	}
	return sockets, nil
}

// takePassed returns the passed sockets by their names. Each must be named by one of the addresses: a socket that
// clients reach and that the server does not serve looks like a server that hangs.
func takePassed(vars map[string]string, addresses []string) (_ map[string][]net.Listener, err error) {
	sockets, err := passedSockets(vars)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(sockets))
		}
	}()
	taken := make(map[string][]net.Listener)
	for _, s := range sockets {
		if !slices.Contains(addresses, "fd:"+s.name) {
			return nil, fmt.Errorf("systemd has passed the socket %s at %s, which no --listen names: "+
				"add --listen fd:%s, or disable its socket unit", s.name, s.Addr(), s.name)
		}
		taken[s.name] = append(taken[s.name], s.Listener)
	}
	named := make(map[string]bool)
	for _, address := range addresses {
		name, ok := passedName(address)
		switch {
		case ok && len(taken[name]) == 0:
			return nil, fmt.Errorf("--listen %s: systemd has passed no socket of this name: start the socket unit, "+
				"and give its own name, or its FileDescriptorName= if it has one", address)
		case ok && named[name]:
			return nil, fmt.Errorf("--listen %s: this socket is named twice", address)
		case ok:
			named[name] = true
		}
	}
	return taken, nil
}

func closeAll(sockets []passedSocket) error {
	var errs []error
	for _, s := range sockets {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
