package zk

// A queue of calls.

// fifo is a queue of calls in a ring that grows and is then reused.
type fifo struct {
	ring []*call
	head int
	n    int
}

func (q *fifo) len() int { return q.n }

// at returns the i-th call from the front.
func (q *fifo) at(i int) *call { return q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *fifo) push(c *call) {
	if q.n == len(q.ring) {
		ring := make([]*call, max(16, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = q.at(i)
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = c
	q.n++
}

func (q *fifo) pop() *call {
	c := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return c
}

// filter keeps, of the calls from the i-th on, those for which keep returns true.
func (q *fifo) filter(i int, keep func(*call) bool) {
	mask, kept := len(q.ring)-1, i
	for ; i < q.n; i++ {
		if c := q.at(i); keep(c) {
			q.ring[(q.head+kept)&mask] = c
			kept++
		}
	}
	for i = kept; i < q.n; i++ {
		q.ring[(q.head+i)&mask] = nil
	}
	q.n = kept
}
