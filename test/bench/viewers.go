package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// viewEvery is how often a page of the dashboard asks whether it has changed.
const viewEvery = 2 * time.Second

// Viewers are browsers that show a page of a dashboard.
type viewers struct {
	got    atomic.Int64 // bytes from the dashboard, headers included
	views  atomic.Int64 // answers
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu  sync.Mutex // guards the field below
	err error      // the first
}

// watchPage lets n viewers show a page until end is called.
func watchPage(ctx context.Context, url string, n int) *viewers {
	ctx, cancel := context.WithCancel(ctx)
	v := &viewers{cancel: cancel}
	for i := range n {
		v.group.Go(func() {
			err := v.view(ctx, url, viewEvery*time.Duration(i)/time.Duration(n))
			if err == nil || ctx.Err() != nil {
				return
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			v.err = errors.Join(v.err, err)
		})
	}
	return v
}

// end ends the viewers. It returns what went wrong.
func (v *viewers) end() error {
	v.cancel()
	v.group.Wait()
	return v.err
}

// view shows a page as its script does: it asks for what is new of it, and names what it has.
func (v *viewers) view(ctx context.Context, url string, delay time.Duration) error {
	client := v.browser()
	defer client.CloseIdleConnections()
	if err := wait(ctx, delay); err != nil {
		return err
	}
	for part, tag := false, ""; ; part = true {
		next, err := look(ctx, client, url, part, tag)
		if err != nil {
			return err
		}
		v.views.Add(1)
		if tag = next; part && tag == "" {
			return fmt.Errorf("%s: no tag: not what its script asks for", url)
		}
		if err := wait(ctx, viewEvery); err != nil {
			return err
		}
	}
}

// browser returns a client with a connection of its own, whose bytes are counted.
func (v *viewers) browser() *http.Client {
	var dialer net.Dialer
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			return &counted{conn, &v.got}, err
		},
		MaxConnsPerHost: 1,
	}}
}

// counted counts what is read from a connection.
type counted struct {
	net.Conn

	read *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// look gets a page, or what is new of it, and returns its tag.
func look(ctx context.Context, client *http.Client, url string, part bool, tag string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept-Encoding", "gzip") // as a browser does; it is not unpacked
	if part {
		req.Header.Set("Turnstile-Part", "1")
		req.Header.Set("If-None-Match", tag)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotModified {
		return "", fmt.Errorf("%s: %s", url, resp.Status)
	}
	return resp.Header.Get("ETag"), nil
}
