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
		t.Fatalf("write %q: %d, %v", text, n, err)
	}
}

func wantRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v, want %q", got[:n], err, want)
	}
}

func wantReadError(t *testing.T, c net.Conn, want error) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, want) {
		t.Fatalf("read returned %d bytes and %v, want %v", n, err, want)
	}
}

// wantSilence fails the test if anything can be read from c within an hour, which only passes in a bubble.
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
			t.Errorf("read returned after %v, want 1h", got)
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
			t.Errorf("read gave up after %v, want 1m", got)
		}

		_ = client.SetDeadline(time.Now().Add(time.Minute))
		wrote, err := client.Write(make([]byte, 10<<20))
		var netErr net.Error
		if !errors.As(err, &netErr) || !netErr.Timeout() {
			t.Errorf("a write that nobody reads ended with %v, want a timeout", err)
		}
		got, _ := io.Copy(io.Discard, io.LimitReader(server, int64(wrote)))
		if got != int64(wrote) {
			t.Errorf("%d bytes arrived of %d that were written", got, wrote)
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
			t.Error("a write to a closed half succeeded")
		}
	})
}

func TestNetRefusesWhereNobodyListens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		if _, err := n.Dial(t.Context(), "tcp", "zk1:2181"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial where nobody listens: %v", err)
		}
		l, err := n.Listen("zk1:2181")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Listen("zk1:2181"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("second listener: %v", err)
		}
		client, err := n.Dial(t.Context(), "tcp", "zk1:2181")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		wantReadError(t, client, syscall.ECONNRESET)
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept on a closed listener: %v", err)
		}
		if _, err := n.Dial(t.Context(), "tcp", "zk1:2181"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial after close: %v", err)
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
			t.Errorf("dial over a cut way: %v", err)
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
			t.Errorf("dial into the dark: %v", err)
		}
		time.AfterFunc(time.Hour, func() { n.Heal() })
		start := time.Now()
		client, server := connect(t, &n, l)
		if got := time.Since(start); got != time.Hour {
			t.Errorf("dial took %v, want 1h", got)
		}
		write(t, client, "x")
		wantRead(t, server, "x")
	})
}

func TestNetDelayIsAddedToEveryWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n zktest.Net
		n.Delay(10 * time.Millisecond) // also for addresses that come later
		start := time.Now()
		client, server := connect(t, &n, listen(t, &n))
		if got := time.Since(start); got != 20*time.Millisecond {
			t.Errorf("connected after %v, want one round trip, 20ms", got)
		}
		start = time.Now()
		write(t, client, "one")
		write(t, client, "two")
		if got := time.Since(start); got != 0 {
			t.Errorf("writing took %v, want none", got)
		}
		wantRead(t, server, "onetwo")
		if got := time.Since(start); got != 10*time.Millisecond {
			t.Errorf("arrived after %v, want 10ms", got)
		}
		n.Delay(0)
		write(t, server, "fast")
		wantRead(t, client, "fast")
		if got := time.Since(start); got != 10*time.Millisecond {
			t.Errorf("answered after %v, want 10ms", got)
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
