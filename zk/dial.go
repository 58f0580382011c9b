package zk

// Dialing a server by name, and TLS.

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"
)

// dialNet connects to an address of the network. A name's addresses are looked up now and tried in random order, each within its
// share of the time that ctx leaves: a name with many addresses is how ensembles are published in clusters.
func dialNet(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	if network == "unix" {
		return d.DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) != nil {
		return d.DialContext(ctx, network, address)
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	for i, addr := range addrs {
		var nc net.Conn
		if nc, err = dialShare(ctx, &d, network, net.JoinHostPort(addr, port), len(addrs)-i); err == nil {
			return nc, nil
		}
	}
	return nil, err
}

func dialShare(ctx context.Context, d *net.Dialer, network, address string, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return d.DialContext(ctx, network, address)
}

// dial opens a connection to s, with TLS if configured. raw is the socket beneath.
func (c *Client) dial(ctx context.Context, s server) (nc, raw net.Conn, err error) {
	raw, err = c.cfg.Dial(ctx, s.network, s.address)
	if err != nil {
		return nil, nil, err
	}
	if c.cfg.TLS == nil || s.network == "unix" {
		return raw, raw, nil
	}
	cfg := c.cfg.TLS.Clone()
	if cfg.ServerName == "" {
		cfg.ServerName = s.host
	}
	secure := tls.Client(raw, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, nil, closeAfter(raw, fmt.Errorf("tls: %w", err))
	}
	return secure, raw, nil
}

// closeAfter closes nc because of err, which says more than an error of the closing could.
func closeAfter(nc net.Conn, err error) error {
	_ = nc.Close()
	return err
}

// buffered reports whether the kernel buffers what is written to nc, so that a small write to an idle connection does not block.
func buffered(nc net.Conn) bool {
	_, ok := nc.(syscall.Conn)
	return ok
}
