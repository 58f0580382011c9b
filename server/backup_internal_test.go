package server

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// take makes a backup over a client's connection.
func (c *rawClient) take() (*bytes.Buffer, *BackupInfo, error) {
	var b bytes.Buffer
	info, err := WriteBackup(&b, func(n int) ([]byte, error) {
		data, _, err := c.get(BackupPath + "/" + strconv.Itoa(n))
		return data, err
	})
	return &b, info, err
}

// restored starts a server from a backup.
func restored(t *testing.T, backup []byte) *Server {
	t.Helper()
	dir := t.TempDir()
	if _, err := Restore(t.Context(), bytes.NewReader(backup), RestoreConfig{Data: dir}); err != nil {
		t.Fatal(err)
	}
	return serve(t, Config{Data: dir}, disk{})
}

// superPassword is the credentials of the superuser of a server of tests, and superDigest its Config.SuperDigest.
const superPassword = "super:secret"

func superDigest() string {
	sum := sha1.Sum([]byte(superPassword))
	return "super:" + base64.StdEncoding.EncodeToString(sum[:])
}

// A backup has the state at one transaction, with everything that was acknowledged before, and clients write meanwhile.
//
// Promise: 10
func TestBackupIsOfOneTransaction(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Data: t.TempDir(), Listen: []string{"unix:" + filepath.Join(shortDir(t), "sock")}}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	acl := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
	want := map[string]string{}
	for i := range 40 { // enough for several pieces, and records that go on in the next one
		path := fmt.Sprintf("/node%d", i)
		data := bytes.Repeat([]byte{byte('a' + i%26)}, 1000*i)
		if _, err := c.create(path, data, 0); err != nil {
			t.Fatal(err)
		}
		want[path] = string(data)
	}
	for _, path := range []string{"/a", "/b"} {
		if _, err := c.create(path, []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.call(wire.OpCreateContainer, &wire.CreateRequest{Path: "/c", ACL: acl, Flags: 4}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.create("/e", nil, 1); err != nil { // ephemeral
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		w := mustConnect(t, s, wire.ConnectRequest{})
		wg.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				data := []byte(strconv.Itoa(i))
				multi := &wire.MultiRequest{Ops: []wire.SubRequest{
					{Op: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/a", Data: data, Version: -1}},
					{Op: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/b", Data: data, Version: -1}},
				}}
				if err := w.call(wire.OpMulti, multi, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range soak.Pick(1, 5) {
		acked := []byte(strconv.Itoa(i))
		if _, err := c.create(fmt.Sprintf("/acked%d", i), acked, 0); err != nil {
			t.Fatal(err)
		}
		want[fmt.Sprintf("/acked%d", i)] = string(acked)
		before := c.zxid
		b, info, err := c.take()
		if err != nil {
			t.Fatal(err)
		}
		if checked, err := CheckBackup(bytes.NewReader(b.Bytes())); err != nil || checked.Zxid != info.Zxid ||
			info.Sessions != 3 || info.Zxid < before {
			t.Errorf("got %+v %v, want %+v", checked, err, info)
		}
		back := restored(t, b.Bytes())
		r := mustConnect(t, back, wire.ConnectRequest{})
		one, stat, err := r.get("/a")
		two, other, err2 := r.get("/b")
		if err != nil || err2 != nil || !bytes.Equal(one, two) || stat.Mzxid != other.Mzxid || stat.Mzxid > info.Zxid {
			t.Errorf("got %s at %d and %s at %d (%v, %v), want the same", one, stat.Mzxid, two, other.Mzxid, err, err2)
		}
		for _, path := range slices.Sorted(maps.Keys(want)) {
			if data, _, err := r.get(path); err != nil || string(data) != want[path] {
				t.Errorf("%s: got %d bytes %v, want %d", path, len(data), err, len(want[path]))
			}
		}
		if _, _, err := r.get("/e"); !errors.Is(err, codeError(wire.NoNode)) {
			t.Errorf("ephemeral node: got %v, want none", err)
		}
		var containers int
		if err := back.do(func(o *owner) { containers = o.tree.CollectableCount() }); err != nil || containers != 1 {
			t.Errorf("got %d containers, want 1", containers)
		}
	}
	close(stop)
	wg.Wait()
}

func TestBackupNeedsTheSuperuserOrTheSocket(t *testing.T) {
	t.Parallel()
	socket := "unix:" + filepath.Join(shortDir(t), "sock")
	s := serve(t, Config{
		Data: t.TempDir(), SuperDigest: superDigest(), Listen: []string{"127.0.0.1:0", socket},
	}, disk{})
	ask := func(c *rawClient, piece int) error {
		_, _, err := c.get(BackupPath + "/" + strconv.Itoa(piece))
		return err
	}
	want := func(what string, err error, code wire.Code) {
		t.Helper()
		if code == wire.OK && err != nil || code != wire.OK && !errors.Is(err, codeError(code)) {
			t.Errorf("%s: got %v, want %v", what, err, code)
		}
	}
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := c.create("/a", nil, 0); err != nil {
		t.Fatal(err)
	}
	want("a client of the network", ask(c, 0), wire.NoAuth)
	for _, auth := range []string{"super:wrong", "ann:secret"} {
		if err := c.authenticate(auth); err != nil {
			t.Fatal(err)
		}
		want(auth, ask(c, 0), wire.NoAuth)
	}
	if err := c.authenticate(superPassword); err != nil {
		t.Fatal(err)
	}
	want("the second piece first", ask(c, 1), wire.BadArguments)
	want("the superuser", ask(c, 0), wire.OK)
	want("a later piece", ask(c, 2), wire.BadArguments)
	own, err := dialAddr(s.Addrs()[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.handshake(&wire.ConnectRequest{Timeout: 600_000}); err != nil {
		t.Fatal(err)
	}
	want("another backup meanwhile", ask(own, 0), wire.ThrottledOp)
	want("a new one of the same client", ask(c, 0), wire.OK)
	_ = c.nc.Close()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) { // until the server has seen it
		if err = ask(own, 0); err == nil || time.Since(begin) > time.Minute {
			break
		}
	}
	want("the socket", err, wire.OK)
	want("a node that is none", func() error { _, _, err := own.get(BackupPath); return err }(), wire.NoNode)

	memory := serve(t, Config{SuperDigest: superDigest()}, disk{})
	c = mustConnect(t, memory, wire.ConnectRequest{})
	if err := c.authenticate(superPassword); err != nil {
		t.Fatal(err)
	}
	want("a server without a directory", ask(c, 0), wire.Unimplemented)
	if _, err := memory.Backup(t.Context(), new(bytes.Buffer)); err == nil {
		t.Error("a server without a directory makes a backup")
	}
}

// authenticate adds an identity of the scheme digest.
func (c *rawClient) authenticate(auth string) error {
	if err := c.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte(auth)}); err != nil {
		return err
	}
	_, err := c.reply(nil)
	return err
}

// A server stops although a backup is not at its end, and leaves nothing behind.
func TestServerStopsDuringABackup(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Data: t.TempDir(), Listen: []string{"unix:" + filepath.Join(shortDir(t), "sock")}}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, _, err := c.get(BackupPath + "/0"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Backup(t.Context(), writerFunc(func([]byte) (int, error) {
		go func() { _ = s.Close() }()
		<-s.stopping
		return 0, errors.New("enough")
	}))
	if err == nil {
		t.Error("got a backup of a server that stops")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Backup(t.Context(), new(bytes.Buffer)); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// No byte of a backup can be another, and none can be missing.
func TestTornOrAlteredBackupIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Data: t.TempDir()}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := c.create("/a", []byte("data"), 0); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := s.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	check := func(what string, bad []byte) {
		t.Helper()
		if _, err := CheckBackup(bytes.NewReader(bad)); !errors.Is(err, ErrDamagedBackup) {
			t.Fatalf("%s: got %v, want ErrDamagedBackup", what, err)
		}
	}
	for i := range whole {
		check(fmt.Sprintf("%d of %d bytes", i, len(whole)), whole[:i])
		bad := bytes.Clone(whole)
		bad[i] ^= 1 << (i % 8)
		check(fmt.Sprintf("byte %d altered", i), bad)
	}
	check("something behind it", append(bytes.Clone(whole), 0))
	check("twice", slices.Concat(whole, whole))
	if _, err := CheckBackup(bytes.NewReader(whole)); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	if _, err := Restore(t.Context(), bytes.NewReader(whole[:len(whole)-600]), RestoreConfig{Data: dir}); err == nil {
		t.Error("a torn backup was restored")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 2 { // lock, pid
		t.Errorf("got %v, want nothing of it", left)
	}
}

// Tokens grow across restores, also if one backup is restored twice, and whatever the replaced state did meanwhile.
//
// Promise: 3
func TestTokensGrowAcrossRestores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, Config{Data: dir}, disk{})
	token := func(s *Server, path string) int64 {
		t.Helper()
		c := mustConnect(t, s, wire.ConnectRequest{})
		if _, err := c.create(path, nil, 1); err != nil {
			t.Fatal(err)
		}
		_, stat, err := c.get(path)
		if err != nil {
			t.Fatal(err)
		}
		return stat.Czxid << tokenShift
	}
	last := token(s, "/lock")
	var b bytes.Buffer
	if _, err := s.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	grow := func(what string, s *Server) {
		t.Helper()
		next := token(s, "/lock")
		if next <= last {
			t.Errorf("%s: got token %d behind %d", what, next, last)
		}
		last = next
	}
	restore := func(cfg RestoreConfig) (*Restored, error) {
		return Restore(t.Context(), bytes.NewReader(b.Bytes()), cfg)
	}
	if _, err := restore(RestoreConfig{Data: dir, Replace: true}); !errors.Is(err, ErrInUse) {
		t.Errorf("a directory that a server uses: got %v, want ErrInUse", err)
	}
	last = token(s, "/later")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(RestoreConfig{Data: dir}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("got %v, want ErrNotEmpty", err)
	}
	done, err := restore(RestoreConfig{Data: dir, Replace: true})
	if err != nil || done.Dropped != 1 || done.Nodes != done.Backup.Nodes-1 {
		t.Fatalf("got %+v %v, want one node less", done, err)
	}
	s = serve(t, Config{Data: dir}, disk{})
	grow("in the place of the former state", s)
	if kept := serve(t, Config{Data: done.Replaced}, disk{}); len(kept.Sessions()) != 2 {
		t.Errorf("got %d sessions in %s, want the former state", len(kept.Sessions()), done.Replaced)
	}
	grow("in another directory", restored(t, b.Bytes()))
	grow("in a third one", restored(t, b.Bytes()))

	far := t.TempDir()
	above := int64(1) << 61
	if _, err := restore(RestoreConfig{Data: far, Above: above}); err != nil {
		t.Fatal(err)
	}
	last = above
	grow("above a token", serve(t, Config{Data: far}, disk{}))
	far = t.TempDir()
	if _, err := restore(RestoreConfig{Data: far, Above: 1<<63 - 1}); err == nil {
		t.Error("got a state without tokens")
	}
}

// A client that has seen a later state than a restored one begins anew: it is not turned away for ever.
func TestClientOfALaterStateHasExpired(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	live := mustConnect(t, s, wire.ConnectRequest{})
	const later = 1 << 62
	for name, req := range map[string]*wire.ConnectRequest{
		"unknown session": {Timeout: 5000, SessionID: 12345, Password: live.password, LastZxidSeen: later},
		"wrong password":  {Timeout: 5000, SessionID: live.session, Password: make([]byte, 16), LastZxidSeen: later},
	} {
		resp, err := dial(t, s).handshake(req)
		if err != nil || resp.Timeout != 0 || resp.SessionID != 0 {
			t.Errorf("%s: got %+v %v, want zeros: the session has expired", name, resp, err)
		}
	}
	// One that is this server's own is not: it must see no earlier state.
	req := &wire.ConnectRequest{Timeout: 5000, SessionID: live.session, Password: live.password, LastZxidSeen: later}
	if resp, err := dial(t, s).handshake(req); err == nil {
		t.Errorf("got %+v, want the end of the connection", resp)
	}
}
