// Command gozk lets go-zookeeper's Lock contend with other projects' locks, for the tests of interop. It is in this
// module so that the main one does not depend on go-zookeeper.
//
// usage: gozk SERVERS REFEREE PARTY PATH lock SESSION_MS CONTENDERS PERMITS
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 8 || args[4] != "lock" {
		return errors.New("usage: gozk SERVERS REFEREE PARTY PATH lock SESSION_MS CONTENDERS PERMITS")
	}
	session, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	contenders, err := strconv.Atoi(args[6])
	if err != nil {
		return err
	}
	ends := make(chan error)
	for range contenders {
		go func() {
			ends <- contend(args[0], args[1], args[2], args[3], time.Duration(session)*time.Millisecond)
		}()
	}
	for range contenders {
		if err := <-ends; err != nil {
			return err
		}
	}
	return nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// contend takes the lock again and again until the referee dismisses it.
func contend(servers, referee, party, path string, timeout time.Duration) error {
	conn, _, err := zk.Connect(strings.Split(servers, ","), timeout, zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	defer conn.Close()
	judge, err := new(net.Dialer).DialContext(context.Background(), "tcp", referee)
	if err != nil {
		return err
	}
	defer judge.Close()
	answers := bufio.NewReader(judge)
	if _, err := fmt.Fprintf(judge, "hello %s\n", party); err != nil {
		return err
	}
	lock := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
	for {
		if err := lock.Lock(); err != nil {
			return fmt.Errorf("lock: %w", err)
		}
		if _, err := ask(judge, answers, "enter 1"); err != nil {
			return err
		}
		answer, err := ask(judge, answers, "leave")
		if err != nil {
			return err
		}
		if err := lock.Unlock(); err != nil {
			return fmt.Errorf("unlock: %w", err)
		}
		if answer == "bye" {
			return nil
		}
	}
}

func ask(judge net.Conn, answers *bufio.Reader, line string) (string, error) {
	if _, err := fmt.Fprintln(judge, line); err != nil {
		return "", err
	}
	answer, err := answers.ReadString('\n')
	return strings.TrimSpace(answer), err
}
