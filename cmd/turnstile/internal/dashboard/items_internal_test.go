package dashboard

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

// What is told of items is seen, their bodies and headers only if the dashboard may show data, and nothing of a path
// that it does not show.
func TestItemsOfAQueueAreListedAndFound(t *testing.T) {
	t.Parallel()
	w, s := ordinary()
	closed, open := board(t, w, s, Config{}), board(t, w, s, Config{Data: true})
	data := []string{"2 more", "to: &lt;ann&gt;\nhidden\\x1b</pre>", "bytes more", "traceparent", "00-1"}
	for _, c := range []struct {
		d             *Dashboard
		path          string
		wanted, never []string
	}{
		{closed, "/items?path=/queues/mail", []string{
			"<title>/queues/mail: ready", "item6", `href="items?kind=dead&amp;path=%2Fqueues%2Fmail"`,
			`href="item?id=item6&amp;path=%2Fqueues%2Fmail&amp;state=ready"`,
		}, []string{"item7", "There are more"}},
		{closed, "/items?path=/queues/mail&kind=dead", []string{"item59", "item7", "20 attempts failed"}, nil},
		{closed, "/items?path=/queues/mail&kind=delayed", []string{"No item is in this state."}, nil},
		{closed, "/items?path=/queues/mail&kind=nonsense", []string{"item6"}, nil},
		{closed, "/items?path=/queues/old", []string{"no queue at this path whose items are read"}, nil},
		{closed, "/items?path=/gone", []string{"no queue at this path whose items are read"}, nil},
		{closed, "/items", []string{"no queue at this path whose items are read"}, nil},
		{closed, "/items?path=/" + strings.Repeat("x", maxLink), []string{"no queue"}, []string{`href=""`}},
		{closed, "/item?path=/queues/mail&state=dead&id=item7", []string{
			"<title>item7", ">dead<", ">20<", "2000 bytes", "20 attempts failed", "the first", "the last", "customer-7",
			">30s<", "--show-data",
		}, append(data, "to: ")},
		{closed, "/item?path=/queues/mail&state=odd&id=+item7+", []string{"20 attempts failed"}, nil},
		{closed, "/item?path=/queues/mail&id=gone", []string{"There is no such item"}, nil},
		{closed, "/item?path=/queues/mail", []string{"Enter the id"}, nil},
		{closed, "/item?path=/gone&id=item7", []string{"no queue at this path"}, []string{"20 attempts failed"}},
		{open, "/item?path=/queues/mail&id=item7", append(data, "1983 bytes more"), []string{"--show-data"}},
	} {
		body := get(c.d, c.path).Body.String()
		for _, want := range c.wanted {
			if !strings.Contains(body, want) {
				t.Errorf("%.80s does not show %q:\n%s", c.path, want, body)
			}
		}
		for _, never := range c.never {
			if strings.Contains(body, never) {
				t.Errorf("%.80s shows %q", c.path, never)
			}
		}
	}
}

// Viewers may ask for any number of items. They are looked for one after the other, as each may take long, and if too
// many are to be found the page says so. What was not found is not looked for all the time.
func TestOneItemIsLookedForAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := (&world{}).source()
		var looking, most, looked atomic.Int32
		source.Item = func(context.Context, string, string, string, bool) (ensemble.Item, error) {
			looked.Add(1)
			most.Store(max(most.Load(), looking.Add(1)))
			time.Sleep(4 * time.Second) // in a bubble
			looking.Add(-1)
			return ensemble.Item{}, ensemble.ErrTooMany
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d := New(ctx, source, Config{Root: "/", Audit: t.Logf})
		d.collector.take(&survey.Snapshot{
			Mode: survey.Live, Listed: 1, Entries: []survey.Entry{{Path: "/q", Kind: survey.Queue}},
		}, time.Now())
		page := func(id int) string { return get(d, fmt.Sprint("/item?path=/q&id=", id)).Body.String() }
		for id := range 1 + maxTurns + 1 {
			go page(id)
			time.Sleep(10 * time.Millisecond) // in a bubble
		}
		time.Sleep(time.Second) // in a bubble
		if body := page(maxTurns + 1); !strings.Contains(body, "too many others") {
			t.Errorf("it does not say that others are looking:\n%s", body)
		}
		time.Sleep(25 * time.Second) // in a bubble
		for id := range 1 + maxTurns {
			if body := page(id); !strings.Contains(body, "turnstile queue show") {
				t.Errorf("%d: it does not say what to do:\n%s", id, body)
			}
		}
		if most.Load() != 1 {
			t.Errorf("%d are looked for at a time", most.Load())
		}
		looked.Store(0)
		for range 150 {
			page(0)
			time.Sleep(2 * time.Second) // in a bubble
		}
		if n := looked.Load(); n < 2 || n > 4 { // 300 s, and 80 s of rest each time
			t.Errorf("what takes 4 s to look for is looked for %d times in five minutes", n)
		}
		time.Sleep(time.Minute) // in a bubble: until it has ended
	})
}

// The rates of a queue are made of the look before, on both of its pages.
func TestRatesAreMadeOfTheLookBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := ordinary()
		d := board(t, w, s, Config{})
		for _, path := range []string{"/queues", "/queue?path=/queues/mail"} {
			w.queues["/queues/mail"] = ensemble.Queue{Rates: ensemble.Rates{Known: true, In: 1.2, Out: 3}}
			if body := get(d, path).Body.String(); !strings.Contains(body, ">1.2<") {
				t.Errorf("%s shows at first:\n%s", path, body)
			}
			time.Sleep(3 * time.Second) // in a bubble
			if body := get(d, path).Body.String(); !strings.Contains(body, ">4.2<") {
				t.Errorf("%s shows then:\n%s", path, body)
			}
		}
	})
}
