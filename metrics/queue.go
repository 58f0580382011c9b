package metrics

// The metrics of queues.

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/queue"
)

// queues are the metrics of all queues. They are computed when they are read.
type queues struct {
	puts, items, delay, processing, inFlight *prometheus.Desc

	names *names[queueSeries]
}

// A queueSeries has the series of the queues of one name.
type queueSeries struct {
	name string

	mu                sync.Mutex // guards the fields below
	puts              uint64
	results           [queue.ResultLost + 1]uint64
	delay, processing *histogram
	inFlight          int
}

func newQueues(nameOf func(path string) string) *queues {
	return &queues{
		puts: desc("turnstile_queue_puts_total", "Items that were put.", "queue"),
		items: desc("turnstile_queue_items_total",
			"Deliveries that have ended: the item is done, retried, dead, or its claim was lost.", "queue", "result"),
		delay: desc("turnstile_queue_delay_seconds",
			"How long items were ready before they were delivered.", "queue"),
		processing: desc("turnstile_queue_processing_seconds", "How long deliveries lasted.", "queue"),
		inFlight: desc("turnstile_queue_in_flight",
			"Items that were delivered to this process and have not ended.", "queue"),
		names: newNames(nameOf, func(name string) *queueSeries {
			return &queueSeries{name: name, delay: newHistogram(slow), processing: newHistogram(slow)}
		}),
	}
}

// Queue returns the hooks of a queue. They may be those of any number of queues.
func (m *Metrics) Queue() queue.Hooks {
	q := m.queues
	return queue.Hooks{
		Put: func(_ context.Context, path string, items int) {
			s := q.names.of(path)
			s.mu.Lock()
			s.puts += uint64(items)
			s.mu.Unlock()
		},
		Claimed: func(_ context.Context, item *queue.Item) {
			s, waited := q.names.of(item.Queue()), item.Waited().Seconds()
			s.mu.Lock()
			s.inFlight++
			s.delay.observe(waited)
			s.mu.Unlock()
		},
		Ended: func(_ context.Context, item *queue.Item, end queue.ItemEnd) {
			s := q.names.of(item.Queue())
			s.mu.Lock()
			s.inFlight--
			s.results[min(end.Result, queue.ResultLost)]++
			s.processing.observe(end.Took.Seconds())
			s.mu.Unlock()
		},
	}
}

// Describe sends the descriptions of the metrics.
func (q *queues) Describe(to chan<- *prometheus.Desc) {
	describe(to, q.puts, q.items, q.delay, q.processing, q.inFlight)
}

// Collect sends the metrics.
func (q *queues) Collect(to chan<- prometheus.Metric) {
	for _, s := range q.names.all() {
		send(to, q.collect(s))
	}
}

// collect returns the metrics of the queues of one name.
func (q *queues) collect(s *queueSeries) []prometheus.Metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []prometheus.Metric{
		prometheus.MustNewConstMetric(q.puts, prometheus.CounterValue, float64(s.puts), s.name),
		prometheus.MustNewConstMetric(q.inFlight, prometheus.GaugeValue, float64(s.inFlight), s.name),
		s.delay.export(q.delay, labels("queue", s.name)),
		s.processing.export(q.processing, labels("queue", s.name)),
	}
	for r := queue.Result(1); r <= queue.ResultLost; r++ {
		all = append(all, prometheus.MustNewConstMetric(q.items, prometheus.CounterValue, float64(s.results[r]),
			s.name, r.String()))
	}
	return all
}
