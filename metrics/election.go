package metrics

// The metrics of elections.

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/outcome"
)

// elections are the metrics of all elections.
type elections struct {
	leading        *prometheus.GaugeVec
	terms          *prometheus.CounterVec
	campaign, term *prometheus.HistogramVec

	names *names[electionSeries]
}

// An electionSeries has the series of the elections of one name.
type electionSeries struct {
	name    string
	leading prometheus.Gauge
	terms   prometheus.Counter
}

func newElections(nameOf func(path string) string) *elections {
	l := &elections{
		leading: gauges("turnstile_election_leading",
			"Whether this process leads: 1 or 0. Of a name that stands for several elections, how many it leads.",
			"election"),
		terms: counters("turnstile_election_terms_total", "Elections that this process has won.", "election"),
		campaign: histograms("turnstile_election_campaign_seconds",
			"How long campaigns took, and what came of them.", slow, "election", "outcome"),
		term: histograms("turnstile_election_term_seconds",
			"How long this process led, and how that ended.", terms, "election", "end"),
	}
	l.names = newNames(nameOf, func(name string) *electionSeries {
		return &electionSeries{
			name: name, leading: l.leading.WithLabelValues(name), terms: l.terms.WithLabelValues(name),
		}
	})
	return l
}

// terms are the buckets of the time for which somebody leads, which is long.
var terms = []float64{.1, 1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}

// Elect returns the hooks of a candidate. They may be those of any number of candidates.
func (m *Metrics) Elect() elect.Hooks {
	l := m.elections
	ended := func(e elect.Event, how string) {
		s := l.names.of(e.Path)
		s.leading.Dec()
		l.term.WithLabelValues(s.name, how).Observe(e.Took.Seconds())
	}
	return elect.Hooks{
		Campaign: func(_ context.Context, e elect.Event) { l.names.of(e.Path) },
		Elected: func(_ context.Context, e elect.Event) {
			s := l.names.of(e.Path)
			s.leading.Inc()
			s.terms.Inc()
			l.campaign.WithLabelValues(s.name, "elected").Observe(e.Took.Seconds())
		},
		Failed: func(ctx context.Context, e elect.Event) {
			s := l.names.of(e.Path)
			l.campaign.WithLabelValues(s.name, outcome.OfFailure(ctx, e.Err)).Observe(e.Took.Seconds())
		},
		Resigned: func(e elect.Event) {
			if errors.Is(e.Err, elect.ErrRevoked) {
				ended(e, "revoked")
			} else {
				ended(e, "resigned")
			}
		},
		Lost: func(e elect.Event) { ended(e, "lost") },
	}
}

// Describe sends the descriptions of the metrics.
func (l *elections) Describe(to chan<- *prometheus.Desc) { l.vectors().describe(to) }

// Collect sends the metrics.
func (l *elections) Collect(to chan<- prometheus.Metric) { l.vectors().collect(to) }

func (l *elections) vectors() group { return group{l.leading, l.terms, l.campaign, l.term} }
