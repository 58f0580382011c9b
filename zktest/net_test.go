package zktest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// connect returns the two ends of a new connection to l.
func connect(t *testing.T, n *zktest.Net, l net.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := n.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// listen opens a listener on an address that n chooses.
func listen(t *testing.T, n *zktest.Net) net.Listener {
	t.Helper()
	l, err := n.Listen("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("write %q: got %d, %v", text, n, err)
	}
}

func wantRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got[:n], err, want)
	}
}

func wantReadError(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, want) {
		t.Fatalf("read: got %d bytes and %v, want %v", n, err, want)
	}
}

// wantSilence fails the test if c has anything to read within an hour. Use it in a bubble only.
func wantSilence(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Hour))
	wantReadError(t, c, os.ErrDeadlineExceeded)
	_ = c.SetReadDeadline(time.Time{})
}

func TestNetCarriesBytesBothWays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		client, server := connect(t, &n, listen(t, &n))
		write(t, client, "ping")
		write(t, client, "pong")
		wantRead(t, server, "pingpong")
		write(t, server, "yes")
		wantRead(t, client, "yes")
	})
}

func TestNetReadWaitsWithoutHoldingUpTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		client, server := connect(t, &n, listen(t, &n))
		start := time.Now()
		time.AfterFunc(time.Hour, func() { _, _ = client.Write([]byte("late")) })
		wantRead(t, server, "late")
		if got := time.Since(start); got != time.Hour {
			t.Errorf("got read after %v, want 1h", got)
		}
	})
}

func TestNetDeadlinesEndReadsAndWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		client, server := connect(t, &n, listen(t, &n))
		start := time.Now()
		_ = client.SetDeadline(start.Add(time.Minute))
		wantReadError(t, client, os.ErrDeadlineExceeded)
		if got := time.Since(start); got != time.Minute {
			t.Errorf("got read deadline after %v, want 1m", got)
		}

		_ = client.SetDeadline(time.Now().Add(time.Minute))
		wrote, err := client.Write(make([]byte, 10<<20))
		var netErr net.Error
		if !errors.As(err, &netErr) || !netErr.Timeout() {
			t.Errorf("write without a reader: got %v, want a timeout", err)
		}
		got, _ := io.Copy(io.Discard, io.LimitReader(server, int64(wrote)))
		if got != int64(wrote) {
			t.Errorf("got %d bytes, want the %d written", got, wrote)
		}
	})
}

func TestNetClosesByHalves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		client, server := connect(t, &n, listen(t, &n))
		write(t, client, "last words")
		if err := client.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		wantRead(t, server, "last words")
		wantReadError(t, server, io.EOF)
		write(t, server, "answer")
		wantRead(t, client, "answer")

		_ = server.Close()
		wantReadError(t, client, io.EOF)
		wantReadError(t, server, net.ErrClosed)
		if _, err := client.Write([]byte("x")); err == nil {
			t.Error("write after CloseWrite: got nil, want an error")
		}
	})
}

func TestNetRefusesAddressWithoutListener(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		if _, err := n.Dial(t.Context(), "tcp", "zk1:2181"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial without a listener: got %v, want ECONNREFUSED", err)
		}
		l, err := n.Listen("zk1:2181")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Listen("zk1:2181"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("second listener: got %v, want EADDRINUSE", err)
		}
		client, err := n.Dial(t.Context(), "tcp", "zk1:2181")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		wantReadError(t, client, syscall.ECONNRESET)
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept on a closed listener: got %v, want net.ErrClosed", err)
		}
		if _, err := n.Dial(t.Context(), "tcp", "zk1:2181"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial after close: got %v, want ECONNREFUSED", err)
		}
		_ = client.Close()
	})
}

func TestNetCutBreaksAndRefusesUntilHealed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		l, other := listen(t, &n), listen(t, &n)
		client, server := connect(t, &n, l)
		spared, _ := connect(t, &n, other)
		n.Cut(l.Addr().String())
		wantReadError(t, client, syscall.ECONNRESET)
		wantReadError(t, server, syscall.ECONNRESET)
		write(t, spared, "alive")
		if _, err := n.Dial(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial a cut address: got %v, want ECONNREFUSED", err)
		}
		n.Heal(l.Addr().String())
		client, server = connect(t, &n, l)
		write(t, client, "again")
		wantRead(t, server, "again")
	})
}

func TestNetHalfOpenSwallowsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		l := listen(t, &n)
		client, server := connect(t, &n, l)
		idle, idleServer := connect(t, &n, l)
		leaving, leavingServer := connect(t, &n, l)

		n.HalfOpen()
		write(t, client, "lost")
		write(t, server, "lost too")
		_ = leaving.Close()
		wantSilence(t, client)
		wantSilence(t, server)
		wantSilence(t, leavingServer)

		n.Heal()
		wantReadError(t, client, syscall.ECONNRESET)
		wantReadError(t, server, syscall.ECONNRESET)
		wantReadError(t, leavingServer, syscall.ECONNRESET)
		write(t, idle, "nothing of mine was lost")
		wantRead(t, idleServer, "nothing of mine was lost")
	})
}

func TestNetHalfOpenKeepsDialsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		l := listen(t, &n)
		n.HalfOpen()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := n.Dial(ctx, "tcp", l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial a half-open address: got %v, want a deadline error", err)
		}
		time.AfterFunc(time.Hour, func() { n.Heal() })
		start := time.Now()
		client, server := connect(t, &n, l)
		if got := time.Since(start); got != time.Hour {
			t.Errorf("got dial after %v, want 1h", got)
		}
		write(t, client, "x")
		wantRead(t, server, "x")
	})
}

func TestNetDelayIsAddedToEveryWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		n.Delay(10 * time.Millisecond) // also for later addresses
		start := time.Now()
		client, server := connect(t, &n, listen(t, &n))
		if got := time.Since(start); got != 20*time.Millisecond {
			t.Errorf("got connection after %v, want one round trip, 20ms", got)
		}
		start = time.Now()
		write(t, client, "one")
		write(t, client, "two")
		if got := time.Since(start); got != 0 {
			t.Errorf("got write after %v, want 0s", got)
		}
		wantRead(t, server, "onetwo")
		if got := time.Since(start); got != 10*time.Millisecond {
			t.Errorf("got data after %v, want 10ms", got)
		}
		n.Delay(0)
		write(t, server, "fast")
		wantRead(t, client, "fast")
		if got := time.Since(start); got != 10*time.Millisecond {
			t.Errorf("got answer after %v, want 10ms", got)
		}
	})
}

func TestNetHalfOpenLosesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		l := listen(t, &n)
		client, server := connect(t, &n, l)
		write(t, client, "arrived ")
		n.Delay(time.Second, l.Addr().String())
		write(t, client, "under way")
		n.HalfOpen(l.Addr().String())
		wantRead(t, server, "arrived ")
		wantSilence(t, server)
	})
}
