package interop_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/queue/classic"
)

// An ask is an operation of our queue. Its answer has the form of queuePeer's.
type ask func(ctx context.Context, arg string) (string, error)

// orNone asks for an item that may be missing.
func orNone(f func(context.Context) ([]byte, bool, error)) ask {
	return func(ctx context.Context, _ string) (string, error) {
		body, ok, err := f(ctx)
		if !ok {
			return "none", err
		}
		return "item " + string(body), err
	}
}

// orEmpty asks for an item that must be there.
func orEmpty(f func(context.Context) ([]byte, error)) ask {
	return func(ctx context.Context, _ string) (string, error) {
		body, err := f(ctx)
		if errors.Is(err, classic.ErrEmpty) {
			return "empty", nil
		}
		return "item " + string(body), err
	}
}

// simpleAsks are the operations of the simple queue.
func simpleAsks(q *classic.Simple) map[string]ask {
	within := func(limit time.Duration) ask {
		return orNone(func(ctx context.Context) ([]byte, bool, error) { return q.PollFor(ctx, limit) })
	}
	return map[string]ask{
		"peek":        orNone(q.Peek),
		"element":     orEmpty(q.Element),
		"poll":        orNone(q.Poll),
		"remove":      orEmpty(q.Remove),
		"take":        orEmpty(q.Take),
		"pollfor":     within(queuePatience),
		"pollbriefly": within(50 * time.Millisecond),
	}
}

// items is what the queues of Curator and kazoo have in common.
type items interface {
	Take(ctx context.Context) (*classic.Item, error)
	TryTake(ctx context.Context) (*classic.Item, error)
	Len(ctx context.Context) (int, error)
}

func textOf(item *classic.Item) string {
	var bodies []string
	for _, body := range item.Elements {
		bodies = append(bodies, string(body))
	}
	return strings.Join(bodies, " ")
}

// itemAsks are the operations of these queues. They have one item in progress at a time.
func itemAsks(q items) map[string]ask {
	inWork := new(classic.Item)
	ends := func(how func(*classic.Item, context.Context) error) ask {
		return func(ctx context.Context, _ string) (string, error) { return "ok", how(inWork, ctx) }
	}
	return map[string]ask{
		"get": func(ctx context.Context, _ string) (string, error) {
			item, err := q.Take(ctx)
			if err != nil {
				return "", err
			}
			inWork = item
			return "item " + textOf(item), nil
		},
		"poll": func(ctx context.Context, _ string) (string, error) {
			item, err := q.TryTake(ctx)
			if errors.Is(err, classic.ErrEmpty) {
				return "none", nil
			}
			if err != nil {
				return "", err
			}
			return "item " + textOf(item), item.Done(ctx)
		},
		"len": func(ctx context.Context, _ string) (string, error) {
			n, err := q.Len(ctx)
			return strconv.Itoa(n), err
		},
		"holds": func(ctx context.Context, _ string) (string, error) {
			held, err := inWork.Held(ctx)
			return map[bool]string{true: "yes", false: "no"}[held], err
		},
		"done":    ends((*classic.Item).Done),
		"drop":    ends((*classic.Item).Done),
		"release": ends((*classic.Item).Release),
		"requeue": ends((*classic.Item).Requeue),
	}
}
