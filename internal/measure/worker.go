package measure

// What a worker process answers.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Numbers are what follows an order; a missing one is 0.
type Numbers [2]int

// Millis is the i-th number as a time.
func (n Numbers) Millis(i int) time.Duration { return time.Duration(n[i]) * time.Millisecond }

// Millis writes an order with a time.
func Millis(order string, d time.Duration) string {
	return fmt.Sprintf("%s %d", order, d.Milliseconds())
}

func parseNumbers(text string) (n Numbers, err error) {
	words := strings.Fields(text)
	if len(words) > len(n) {
		return n, fmt.Errorf("%d numbers, want at most %d", len(words), len(n))
	}
	for i, word := range words {
		if n[i], err = strconv.Atoi(word); err != nil {
			return n, err
		}
	}
	return n, nil
}

var errStarterGone = errors.New("the process that started this one is gone")

// Work is what a worker process does: it prints "ready", and obeys the orders on stdin until that ends. An answer is a
// line "t BEGAN LOCKED UNLOCKED" for each cycle and a line "ok" with the figures, or a line "error" and why. When stdin
// ends, the context of an order that is being obeyed ends.
func Work(ctx context.Context, stdin io.Reader, stdout io.Writer,
	obey func(ctx context.Context, order string, n Numbers) (Answer, error),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	orders, failed := make(chan string), make(chan error, 1)
	go func() { // ends when stdin does, at the latest with the process
		defer close(orders)
		defer cancel(errStarterGone)
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			orders <- lines.Text()
		}
		failed <- lines.Err()
	}()
	out := bufio.NewWriter(stdout)
	fmt.Fprintln(out, "ready")
	if err := out.Flush(); err != nil {
		return err
	}
	for line := range orders {
		order, rest, _ := strings.Cut(line, " ")
		n, err := parseNumbers(rest)
		var a Answer
		if err == nil {
			a, err = obey(ctx, order, n)
		}
		if err != nil {
			fmt.Fprintf(out, "error %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		} else {
			for _, c := range a.Cycles {
				fmt.Fprintf(out, "t %d %d %d\n", c.Began, c.Locked, c.Unlocked)
			}
			fmt.Fprint(out, "ok")
			for _, f := range a.Figures {
				fmt.Fprint(out, " ", f)
			}
			fmt.Fprintln(out)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return <-failed
}
