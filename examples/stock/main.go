// Command stock takes one item from a stock that is kept in ZooKeeper. The write carries the lock's guard, so the
// server itself refuses it once the hold has ended, however late the writer is.
package main

// The whole program.

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := open(ctx, "127.0.0.1:2181")
	if err != nil && !errors.Is(err, context.Cause(ctx)) { // to be stopped is no failure
		log.Fatal(err)
	}
	stop()
}

func open(ctx context.Context, servers string) error {
	client, err := zk.Open(ctx, zk.Config{Servers: servers, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer client.Close()
	left, err := take(ctx, client, "/stock")
	if err != nil {
		return err
	}
	fmt.Println(left, "left")
	return nil
}

// take decreases the number at path by one, and returns what is left. A path that does not exist is a stock of ten.
func take(ctx context.Context, client *zk.Client, path string) (int, error) {
	m, err := lock.NewMutex(client, "/locks"+path, lock.Config{Label: "stock"})
	if err != nil {
		return 0, err
	}
	hold, err := m.Lock(ctx)
	if err != nil {
		return 0, err
	}
	defer hold.Unlock()

	sess := hold.Session()
	if _, err := sess.Create(ctx, path, []byte("10"), zk.Persistent); err != nil && !errors.Is(err, zk.NodeExists) {
		return 0, err
	}
	data, stat, err := sess.Get(ctx, path)
	if err != nil {
		return 0, err
	}
	left, err := strconv.Atoi(string(data))
	if err != nil {
		return 0, fmt.Errorf("%s is not a number: %w", path, err)
	}
	if left == 0 {
		return 0, errors.New("nothing left")
	}
	left--
	_, err = sess.Multi(ctx, hold.Guard(), zk.SetOp(path, []byte(strconv.Itoa(left)), stat.Version))
	return left, err
}
