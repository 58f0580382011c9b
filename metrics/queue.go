package metrics

// The metrics of queues.

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/queue"
)

// queues are the metrics of all queues.
type queues struct {
	puts, items       *prometheus.CounterVec
	delay, processing *prometheus.HistogramVec
	inFlight          *prometheus.GaugeVec

	names *names[queueSeries]
}

// A queueSeries has the series of the queues of one name.
type queueSeries struct {
	puts              prometheus.Counter
	results           [queue.ResultLost + 1]prometheus.Counter
	delay, processing prometheus.Observer
	inFlight          prometheus.Gauge
}

func newQueues(nameOf func(path string) string) *queues {
	q := &queues{
		puts: counters("turnstile_queue_puts_total", "Items that were put.", "queue"),
		items: counters("turnstile_queue_items_total",
			"Deliveries that have ended: the item is done, retried, dead, or its claim was lost.", "queue", "result"),
		delay: histograms("turnstile_queue_delay_seconds",
			"How long items were ready before they were delivered.", slow, "queue"),
		processing: histograms("turnstile_queue_processing_seconds",
			"How long deliveries lasted.", slow, "queue"),
		inFlight: gauges("turnstile_queue_in_flight",
			"Items that were delivered to this process and have not ended.", "queue"),
	}
	q.names = newNames(nameOf, func(name string) *queueSeries {
		s := &queueSeries{
			puts:  q.puts.WithLabelValues(name),
			delay: q.delay.WithLabelValues(name), processing: q.processing.WithLabelValues(name),
			inFlight: q.inFlight.WithLabelValues(name),
		}
		for r := range s.results {
			if r > 0 {
				s.results[r] = q.items.WithLabelValues(name, queue.Result(r).String())
			}
		}
		return s
	})
	return q
}

// Queue returns the hooks of a queue. They may be those of any number of queues.
func (m *Metrics) Queue() queue.Hooks {
	q := m.queues
	return queue.Hooks{
		Put: func(_ context.Context, path string, items int) { q.names.of(path).puts.Add(float64(items)) },
		Claimed: func(_ context.Context, item *queue.Item) {
			s := q.names.of(item.Queue())
			s.inFlight.Inc()
			s.delay.Observe(item.Waited().Seconds())
		},
		Ended: func(_ context.Context, item *queue.Item, end queue.ItemEnd) {
			s := q.names.of(item.Queue())
			s.inFlight.Dec()
			s.results[min(end.Result, queue.ResultLost)].Inc()
			s.processing.Observe(end.Took.Seconds())
		},
	}
}

// Describe sends the descriptions of the metrics.
func (q *queues) Describe(to chan<- *prometheus.Desc) { q.vectors().describe(to) }

// Collect sends the metrics.
func (q *queues) Collect(to chan<- prometheus.Metric) { q.vectors().collect(to) }

func (q *queues) vectors() group { return group{q.puts, q.items, q.delay, q.processing, q.inFlight} }
