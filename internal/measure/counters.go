package measure

// The counters of a server.

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Ask sends a request to a server that closes the connection after its answer, and returns the answer.
func Ask(ctx context.Context, addr, request string) (string, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	if len(text) > 0 {
		err = nil // some servers reset the connection after their answer
	}
	return string(text), err
}

// Counters returns the counters of a ZooKeeper server: the numbers of its four-letter word mntr.
func Counters(ctx context.Context, addr string) (map[string]float64, error) {
	text, err := Ask(ctx, addr, "mntr")
	if err != nil {
		return nil, err
	}
	counters := make(map[string]float64)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			counters[name] = n
		}
	}
	if _, ok := counters["zk_packets_sent"]; !ok {
		return nil, fmt.Errorf("%s: mntr: no packet counters in %.200q", addr, text)
	}
	return counters, nil
}
