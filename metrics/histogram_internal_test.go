package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// What the histogram exports is what client_golang's does.
func TestHistogramIsThatOfClientGolang(t *testing.T) {
	t.Parallel()
	for range 200 {
		want := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "x", Help: "x", Buckets: slow, NativeHistogramBucketFactor: 1.1,
		})
		got := newHistogram(slow)
		spread := rand.Float64() * 10
		for range rand.N(300) {
			took := time.Duration(math.Exp(rand.Float64()*spread + rand.Float64()*20)).Seconds()
			switch rand.N(20) {
			case 0:
				took = 0
			case 1:
				took = slow[rand.N(len(slow))]
			case 2:
				took = math.Exp2(float64(rand.N(20) - 10))
			}
			want.Observe(took)
			got.observe(took)
		}
		var a, b dto.Metric
		if err := want.Write(&a); err != nil {
			t.Fatal(err)
		}
		if err := got.export(want.Desc(), nil).Write(&b); err != nil {
			t.Fatal(err)
		}
		a.Histogram.CreatedTimestamp = nil
		sum := a.Histogram.GetSampleSum()
		if diff := sum - b.Histogram.GetSampleSum(); math.Abs(diff) > 1e-9*sum {
			t.Fatalf("the sums differ by %v", diff)
		}
		b.Histogram.SampleSum = a.Histogram.SampleSum
		if !proto.Equal(a.Histogram, b.Histogram) {
			t.Fatalf("got  %v,\nwant %v", b.Histogram, a.Histogram)
		}
	}
}

// What is shorter or longer than everything that has a bucket counts in the outermost ones.
func TestHistogramTakesAnyTime(t *testing.T) {
	t.Parallel()
	h := newHistogram(slow)
	for _, took := range []float64{0, 1e-300, 1e-12, 1e12, math.MaxFloat64} {
		h.observe(took)
	}
	if h.count != 5 || h.zeros != 2 || h.native[0] != 1 || h.native[len(h.native)-1] != 2 {
		t.Errorf("got %+v", h)
	}
}

func TestOpenKnowsTheOldest(t *testing.T) {
	t.Parallel()
	var o open
	now := time.Now()
	began := make(map[uint64]time.Time)
	for id := uint64(1); id < 5000; id++ {
		since := now.Add(-time.Duration(rand.Int64N(1e12)))
		o.begin(id, since)
		began[id] = since
		for rand.N(100) < 95 && len(began) > 0 {
			for some := range began {
				o.end(some)
				delete(began, some)
				break
			}
			if rand.N(3) == 0 {
				break
			}
		}
		var longest time.Duration
		for _, since := range began {
			longest = max(longest, now.Sub(since))
		}
		if o.n != len(began) || o.longest(now) != longest {
			t.Fatalf("%d for %v, want %d for %v", o.n, o.longest(now), len(began), longest)
		}
	}
}
