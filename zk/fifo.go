package zk

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

// remove takes the i-th call from the front out.
func (q *fifo) remove(i int) {
	mask := len(q.ring) - 1
	for ; i < q.n-1; i++ {
		q.ring[(q.head+i)&mask] = q.ring[(q.head+i+1)&mask]
	}
	q.ring[(q.head+q.n-1)&mask] = nil
	q.n--
}
