package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

func TestServerThatDiffersFromTheOthersIsNamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		nodes []string
		want  int
	}{
		{[]string{"5", "5", "5"}, -1},
		{[]string{"5"}, -1},
		{[]string{"7", "5", "5"}, 0},
		{[]string{"5", "5", "7"}, 2},
		{[]string{"5", "6", "7"}, 0},
	} {
		if got := odd(test.nodes); got != test.want {
			t.Errorf("%v: got %d, want %d", test.nodes, got, test.want)
		}
	}
	answer := "Zxid: 0x100000004\nMode: follower\nNode count: 7\n"
	if field(answer, zxidField) != "0x100000004" || field(answer, nodesField) != "7" ||
		field(answer, "Nothing: ") != "" {
		t.Errorf("got %q, %q, want 0x100000004, 7", field(answer, zxidField), field(answer, nodesField))
	}
}

func TestServerIsRenewedFromTheOthers(t *testing.T) {
	t.Parallel()
	c := Ensemble(t, 3, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	create := func(path string) {
		client, err := zk.Open(ctx, zk.Config{Servers: c.ConnectString(), Timeout: 4 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		sess, err := client.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Create(ctx, path, nil, zk.Persistent); err != nil && !errors.Is(err, zk.NodeExists) {
			t.Fatal(err)
		}
	}
	create("/a")
	i := c.AwaitLeader(-1)
	c.Renew(i)
	c.AwaitAll()
	create("/b")
	if odd, said := c.Odd(); odd != -1 || said == "" {
		t.Errorf("got server %d different from the others:\n%s", odd, said)
	}
}
