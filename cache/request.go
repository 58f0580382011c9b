package cache

// Reading several nodes in one request.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/zk"
)

// A result is the answer to a task.
type result struct {
	stat  zk.Stat
	data  []byte
	names []string // of a task that lists
	err   error    // nil, or a zk.Code
}

// A request has tasks that were sent together.
type request struct {
	tasks   []task
	results func(ctx context.Context) ([]result, error)
	abandon func()
}

// request sends tasks.
func (e *engine) request(tasks []task) *request {
	if e.cfg.NoData {
		return e.readEach(tasks)
	}
	return e.readAll(tasks)
}

// readAll requests data and lists in one request to the server.
func (e *engine) readAll(tasks []task) *request {
	ops := make([]zk.ReadOp, len(tasks))
	for i, t := range tasks {
		if path := join(e.root, t.rel); t.list {
			ops[i] = zk.ChildrenOp(path)
		} else {
			ops[i] = zk.GetOp(path)
		}
	}
	b := e.sess.Batch()
	future := b.MultiRead(ops...)
	b.Send()
	return &request{tasks: tasks, abandon: func() {}, results: func(ctx context.Context) ([]result, error) {
		reads, err := future.Get(ctx)
		if err != nil {
			return nil, err
		}
		results := make([]result, len(reads))
		for i := range reads {
			r := &reads[i]
			results[i] = result{stat: r.Stat, data: r.Data, names: r.Children, err: r.Err}
		}
		return results, nil
	}}
}

// readEach requests each task on its own, in one write, and leaves out the data.
func (e *engine) readEach(tasks []task) *request {
	b := e.sess.Batch()
	answers := make([]answer, len(tasks))
	for i, t := range tasks {
		if path := join(e.root, t.rel); t.list {
			answers[i] = getNames(b, path)
		} else {
			answers[i] = getStat(b, path)
		}
	}
	b.Send()
	abandon := func() {
		for _, a := range answers {
			a.abandon()
		}
	}
	return &request{tasks: tasks, abandon: abandon, results: func(ctx context.Context) ([]result, error) {
		results := make([]result, len(answers))
		for i, a := range answers {
			r, err := a.get(ctx)
			if code, refused := errors.AsType[zk.Code](err); refused && !zk.Temporary(code) {
				r.err = code
			} else if err != nil {
				return nil, err
			}
			results[i] = r
		}
		return results, nil
	}}
}

// An answer is the future result of one task.
type answer struct {
	get     func(context.Context) (result, error)
	abandon func()
}

func newAnswer[T any](f *zk.Future[T], convert func(T) result) answer {
	return answer{abandon: f.Abandon, get: func(ctx context.Context) (result, error) {
		v, err := f.Get(ctx)
		if err != nil {
			return result{}, err
		}
		return convert(v), nil
	}}
}

// getStat reads a node without its data.
func getStat(b *zk.Batch, path string) answer {
	return newAnswer(b.Exists(path), func(e zk.Existence) result {
		if !e.Exists {
			return result{err: zk.NoNode}
		}
		return result{stat: e.Stat}
	})
}

func getNames(b *zk.Batch, path string) answer {
	return newAnswer(b.Children(path), func(c zk.Children) result { return result{names: c.Names, stat: c.Stat} })
}
