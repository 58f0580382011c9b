package peer

// etcd servers.

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Etcd starts n etcd servers with links and with these flags, returns when all of them serve, and stops them when the
// test ends. It skips the test if etcd is not installed; see Need.
func Etcd(t T, n int, flags ...string) *Cluster {
	t.Helper()
	Need(t, "etcd")
	c, err := newEtcd(t, n, flags)
	return started(t, c, err)
}

// newEtcd starts the servers. All of them need the same list of addresses, so there is one link to each server, and
// diallerOf finds out which server dials it.
func newEtcd(t T, n int, flags []string) (*Cluster, error) {
	ports := freePorts(t, 2*n)
	c := &Cluster{t: t, links: newLinks(t, n), modeOf: etcdMode}
	for i := range n { // before the first link: any client may dial that, at once
		c.members = append(c.members, &member{dir: t.TempDir(), addr: local(ports[2*i]), program: "etcd"})
	}
	var all, urls []string
	for i := range n {
		addr, err := c.links.add(&link{way: direction{-1, i}, target: local(ports[2*i+1]), dialler: c.diallerOf})
		if err != nil {
			c.stop()
			return nil, err
		}
		urls = append(urls, "http://"+addr)
		all = append(all, fmt.Sprintf("server%d=http://%s", i, addr))
	}
	for i, m := range c.members {
		client := "http://" + m.addr
		m.args = append([]string{
			"--name", fmt.Sprintf("server%d", i), "--data-dir", filepath.Join(m.dir, "data"), "--log-level", "warn",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", "http://" + local(ports[2*i+1]), "--initial-advertise-peer-urls", urls[i],
			"--initial-cluster", strings.Join(all, ","), "--initial-cluster-state", "new",
		}, flags...)
	}
	return c, c.start()
}

// etcdMode reads a server's mode from its metrics.
func etcdMode(m *member) string {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.addr+"/metrics", http.NoBody)
	if err != nil {
		return ""
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil || !strings.Contains(string(text), "\netcd_server_has_leader 1\n"):
		return ""
	case strings.Contains(string(text), "\netcd_server_is_leader 1\n"):
		return "leader"
	default:
		return "follower"
	}
}

// diallerOf returns the number of the member whose process owns the other end of a connection.
func (c *Cluster) diallerOf(conn net.Conn) (int, bool) {
	inode := socketOf(conn.RemoteAddr(), conn.LocalAddr())
	for i, m := range c.members {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", m.pid()))
		if err != nil || inode == "" {
			return 0, false
		}
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err == nil && target == "socket:["+inode+"]" {
				return i, true
			}
		}
	}
	return 0, false
}

// socketOf returns the inode of the socket with these two addresses, as Linux lists it, or "".
func socketOf(local, remote net.Addr) string {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	from, to := portOf(local), portOf(remote)
	for line := range strings.Lines(string(table)) {
		const localAddress, remoteAddress, inode = 1, 2, 9
		if f := strings.Fields(line); len(f) > inode && strings.HasSuffix(f[localAddress], from) &&
			strings.HasSuffix(f[remoteAddress], to) {
			return f[inode]
		}
	}
	return ""
}

// portOf returns the port of an address in the form of /proc/net/tcp, with its colon.
func portOf(addr net.Addr) string {
	_, port, _ := net.SplitHostPort(addr.String())
	n, _ := strconv.Atoi(port)
	return fmt.Sprintf(":%04X", n)
}
