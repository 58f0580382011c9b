package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// quiet is how long a test waits to see that nothing arrives.
const quiet = 50 * time.Millisecond

// dialled is a connection from end 0 to end 1, seen from both ends.
type dialled struct {
	links     *Links
	addr      string
	listener  net.Listener
	near, far net.Conn
}

func dialLinks(t *testing.T) *dialled {
	t.Helper()
	d := &dialled{links: newLinks(t, 2)}
	t.Cleanup(d.links.close)
	var err error
	if d.listener, err = net.Listen("tcp", FreeAddr(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.listener.Close() })
	if d.addr, err = d.links.between(0, 1, d.listener.Addr().String(), false); err != nil {
		t.Fatal(err)
	}
	d.near = dial(t, d.addr)
	d.far = accept(t, d.listener)
	send(t, d.near, "hello") // data arrives only on a connection: no later change comes before it
	expect(t, d.far, "hello")
	return d
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// awaitRefusal waits until addr refuses connections. A child process that another test is starting has a copy of the
// closed listener between its fork and its exec, so addr may accept connections for a moment longer, and resets them
// when that copy is closed.
func awaitRefusal(t *testing.T, addr string) {
	t.Helper()
	for {
		c, err := net.Dial("tcp", addr)
		switch {
		case err == nil:
			_ = c.Close()
		case errors.Is(err, syscall.ECONNREFUSED):
			return
		case !errors.Is(err, syscall.ECONNRESET):
			t.Fatal(err)
		}
	}
}

func accept(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q and %v, want %q", got[:n], err, want)
	}
}

func expectQuiet(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(quiet))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	if n, err := c.Read(make([]byte, 100)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %d bytes and %v, want nothing", n, err)
	}
}

func TestFrozenDirectionHoldsWhatIsSentAndTheOtherStaysOpen(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	d.links.Freeze(0, 1)
	send(t, d.near, "held, ")
	send(t, d.far, "open")
	expect(t, d.near, "open")
	expectQuiet(t, d.far)
	send(t, d.near, "in order")
	d.links.Heal()
	expect(t, d.far, "held, in order")
}

// Promise: 1
func TestHeldTellsWhetherAFaultHasAnEffect(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	d.links.Freeze(0, 1)
	if got := d.links.Held(); got != 0 {
		t.Errorf("got %d before anything was sent, want 0", got)
	}
	send(t, d.near, "held, ")
	for d.links.Held() == 0 { // for ever if it does not tell
		runtime.Gosched()
	}
	expectQuiet(t, d.far)
	frozen := d.links.Held()
	d.links.Heal()
	send(t, d.near, "open, ")
	expect(t, d.far, "held, open, ")
	if got := d.links.Held(); got != frozen {
		t.Errorf("got %d in an open direction, want %d", got, frozen)
	}
	d.links.Delay(0, 1, 2*time.Second)
	send(t, d.near, "late")
	expect(t, d.far, "late")
	if got := d.links.Held(); got <= frozen {
		t.Errorf("got %d in a delayed direction, want more than %d", got, frozen)
	}
}

func TestFrozenDirectionPushesBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	d.links.Freeze(0, 1)
	all := make([]byte, 32<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(all) // it never fails
	sent := make(chan error, 1)
	go func() {
		_, err := d.near.Write(all)
		sent <- errors.Join(err, d.near.Close())
	}()
	select {
	case err := <-sent:
		t.Fatalf("got 32 MiB accepted by a frozen direction (%v), want back-pressure", err)
	case <-time.After(quiet):
	}
	d.links.Thaw(0, 1)
	got, err := io.ReadAll(d.far)
	if err != nil || !bytes.Equal(got, all) {
		t.Fatalf("got %d bytes (%v), want the %d sent", len(got), err, len(all))
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func TestFrozenDirectionHoldsTheEndToo(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	d.links.CutOff(1)
	send(t, d.near, "last words")
	if err := d.near.Close(); err != nil {
		t.Fatal(err)
	}
	expectQuiet(t, d.far)
	d.links.Heal()
	expect(t, d.far, "last words")
	if _, err := d.far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want io.EOF", err)
	}
}

func TestDelayedDirectionIsLateAndInOrder(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	const delay = 2 * time.Second
	d.links.Delay(0, 1, delay)
	start := time.Now()
	send(t, d.near, "late, ")
	for d.links.Held() == 0 { // until the proxy has read the first bytes
		runtime.Gosched()
	}
	d.links.Delay(0, 1, 0)
	send(t, d.near, "and behind")
	expect(t, d.far, "late, and behind")
	if took := time.Since(start); took < delay {
		t.Errorf("got the bytes after %v, want %v", took, delay)
	}
}

func TestOtherDirectionIsNotDelayed(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	d.links.Delay(0, 1, 24*time.Hour)
	send(t, d.near, "tomorrow")
	send(t, d.far, "at once")
	expect(t, d.near, "at once")
}

func TestDialHangsUntilBothDirectionsAreOpen(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	d.links.Freeze(1, 0)
	late := dial(t, d.addr)
	send(t, late, "hello")
	expectQuiet(t, late)
	given := dial(t, d.addr) // this one does not wait
	if err := given.Close(); err != nil {
		t.Fatal(err)
	}
	d.links.Freeze(0, 1)
	d.links.Thaw(1, 0)
	expectQuiet(t, late)
	d.links.Thaw(0, 1)
	expect(t, accept(t, d.listener), "hello")
}

func TestDialWaitsUntilTheTargetListens(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	target := d.listener.Addr().String()
	if err := d.listener.Close(); err != nil {
		t.Fatal(err)
	}
	awaitRefusal(t, target)
	early := dial(t, d.addr)
	send(t, early, "hello")
	expectQuiet(t, early)
	listener, err := net.Listen("tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	expect(t, accept(t, listener), "hello")
}

func TestZombieDoesNotNoticeThatTheOthersHaveHungUp(t *testing.T) {
	t.Parallel()
	for _, zombie := range []int{0, 1} {
		t.Run(strconv.Itoa(zombie), func(t *testing.T) {
			t.Parallel()
			d := dialLinks(t)
			its, other := d.near, d.far
			if zombie == 1 {
				its, other = d.far, d.near
			}
			d.links.Zombie(zombie)
			send(t, its, "are you there?")
			expectQuiet(t, its)
			if _, err := other.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got %v at the other server, want a reset", err)
			}
			var pending net.Conn
			if zombie == 1 {
				awaitRefusal(t, d.addr)
			} else {
				pending = dial(t, d.addr)
				expectQuiet(t, pending)
			}
			d.links.Heal()
			if n, err := its.Read(make([]byte, 1)); err == nil {
				t.Errorf("got %d bytes after Heal, want the end", n)
			}
			if pending == nil {
				pending = dial(t, d.addr)
			}
			send(t, pending, "hello")
			expect(t, accept(t, d.listener), "hello")
		})
	}
}

func TestAnEndTravelsAsItIs(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	reset(d.far)
	if _, err := d.near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

func TestElectionAddressIsRewritten(t *testing.T) {
	t.Parallel()
	d := dialLinks(t)
	election, err := d.links.between(0, 1, d.listener.Addr().String(), true)
	if err != nil {
		t.Fatal(err)
	}
	back, err := d.links.between(1, 0, "127.0.0.1:1", true)
	if err != nil {
		t.Fatal(err)
	}
	message := func(addr string) string {
		b := binary.BigEndian.AppendUint64(nil, 1<<64-65536)
		b = binary.BigEndian.AppendUint64(b, 1)
		b = binary.BigEndian.AppendUint32(b, uint32(len(addr)))
		return string(append(b, addr...))
	}
	near := dial(t, election)
	send(t, near, message("127.0.0.1:1")+"vote")
	expect(t, accept(t, d.listener), message(back)+"vote")
	torn := dial(t, election)
	send(t, torn, message("127.0.0.1:1")[:25])
	if err := torn.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, accept(t, d.listener), message("127.0.0.1:1")[:25])
}
