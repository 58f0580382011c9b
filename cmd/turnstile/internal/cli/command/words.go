package command

// Four-letter words: what a server says of itself.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// MaxWord is how many bytes the longest answers to four-letter words may have: lists of sessions and nodes.
const MaxWord = 64 << 20

const wordTime = 10 * time.Second

// Word asks a server, as zk.Client.Servers names it, a four-letter word, and accepts an answer of at most so many
// bytes. It may be called once Begin has returned.
func (c *Connection) Word(ctx context.Context, server, word string, most int64) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wordTime)
	defer cancel()
	network, address := "tcp", server
	if path, ok := strings.CutPrefix(server, "unix:"); ok {
		network, address = "unix", path
	}
	dial := c.used.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		stop()
		_ = conn.Close() // it was only read from
	}()
	if c.used.TLS != nil && network == "tcp" {
		cfg := c.used.TLS.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(address)
		}
		conn = tls.Client(conn, cfg)
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", fmt.Errorf("%s: %w", word, err)
	}
	text, err := io.ReadAll(io.LimitReader(conn, most+1))
	switch {
	case int64(len(text)) > most:
		return "", fmt.Errorf("%s: the answer has more than %d bytes", word, most)
	case strings.HasPrefix(string(text), word+" is not executed"):
		return "", errors.New(strings.TrimSuffix(strings.TrimSpace(string(text)), "."))
	case len(text) == 0 && err == nil:
		return "", errors.New("the server does not answer " + word)
	case err != nil:
		return "", fmt.Errorf("%s: %w", word, err)
	}
	return string(text), nil
}
