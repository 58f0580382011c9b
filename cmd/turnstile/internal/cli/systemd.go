package cli

// What systemd is told: sd_notify(3).

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// supervisor is the service manager that has started this process with Type=notify; none with an empty socket.
type supervisor struct {
	socket   string
	watchdog time.Duration // it kills us unless it hears from us this often; 0 if never
}

// newSupervisor returns what the environment says.
func newSupervisor(vars map[string]string) supervisor {
	s := supervisor{socket: vars["NOTIFY_SOCKET"]}
	if name, ok := strings.CutPrefix(s.socket, "@"); ok { // an abstract socket
		s.socket = "\x00" + name
	}
	micros, err := strconv.ParseInt(vars["WATCHDOG_USEC"], 10, 64)
	pid, given := vars["WATCHDOG_PID"]
	if err == nil && micros > 0 && (!given || pid == strconv.Itoa(os.Getpid())) {
		s.watchdog = time.Duration(micros) * time.Microsecond
	}
	return s
}

// tell sends lines such as READY=1. There is nothing to tell without a supervisor.
func (s supervisor) tell(lines ...string) error {
	if s.socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(strings.Join(lines, "\n")))
	return errors.Join(err, conn.Close())
}

// watch tells the supervisor that we are alive, as long as alive returns, until ctx ends.
func (s supervisor) watch(ctx context.Context, alive func()) {
	if s.socket == "" || s.watchdog == 0 {
		return
	}
	tick := time.NewTicker(s.watchdog / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			alive()
			_ = s.tell("WATCHDOG=1") // if it cannot be told, it acts
		case <-ctx.Done():
			return
		}
	}
}
