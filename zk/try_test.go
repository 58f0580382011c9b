package zk_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

func TestTryReal(t *testing.T) {
	addr := os.Getenv("ZKTRY")
	if addr == "" {
		t.Skip()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := zk.Open(ctx, zk.Config{Servers: addr})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%x %v %v\n", s.ID(), s.Timeout(), time.Until(s.Deadline()))
	cr, err := s.Create(ctx, "/try-", []byte("x"), zk.EphemeralSequential)
	fmt.Println(cr, err)
	data, st, w, err := s.GetW(ctx, cr.Path)
	fmt.Println(string(data), st, err)
	fmt.Println(s.Set(ctx, cr.Path, []byte("y"), -1))
	fmt.Println(w.Next(ctx))
	fmt.Println(w.Next(ctx))
	fmt.Println(s.Children(ctx, "/"))
	fmt.Println(s.Multi(ctx, zk.Check(cr.Path, 1), zk.CreateOp("/m", nil, zk.Ephemeral), zk.DeleteOp("/m", -1)))
	fmt.Println(s.Multi(ctx, zk.Check(cr.Path, 1), zk.CreateOp("/m/n", nil, zk.Ephemeral), zk.DeleteOp("/m", -1)))
	fmt.Println(s.MultiRead(ctx, zk.GetOp(cr.Path), zk.ChildrenOp("/"), zk.GetOp("/no")))
	fmt.Println(s.WhoAmI(ctx))
	fmt.Println(s.AddAuth(ctx, zk.Digest("a", "b")))
	fmt.Println(s.WhoAmI(ctx))
	fmt.Println(s.Ephemerals(ctx, "/"))
	fmt.Println(s.DescendantCount(ctx, "/"))
	fmt.Println(s.Config(ctx))
	pw, err := s.Watch(ctx, cr.Path, true)
	fmt.Println(err)
	b := s.Batch()
	f1 := b.Create("/b-", nil, zk.EphemeralSequential)
	f2 := b.Children("/")
	f3 := b.GetW("/zookeeper")
	f4 := b.Delete(cr.Path, -1)
	b.Send()
	fmt.Println(f1.Get(ctx))
	fmt.Println(f2.Get(ctx))
	fmt.Println(f3.Get(ctx))
	fmt.Println(f4.Get(ctx))
	fmt.Println(pw.Next(ctx))
	pw.Close()
	fmt.Println(s.Exists(ctx, "/nope"))
	start := time.Now()
	for range 1000 {
		if _, _, err := s.Exists(ctx, "/zookeeper"); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("1000 exists", time.Since(start))
	_, _, err = s.Reconfig(ctx, zk.Reconfig{Joining: "x", From: -1})
	fmt.Println(err, zk.OutcomeOf(err))
	fmt.Println(s.Exists(ctx, "/"))
	fmt.Println(c.Close())
	fmt.Println(context.Cause(s.Context()))
}
